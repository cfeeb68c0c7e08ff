package retry

import (
	"cmp"
	"slices"
)

// window is the requests of the last minute, and those for which a time is reserved.
type window struct {
	Slots    []slot `json:"slots"`              // by time
	Requests int    `json:"requests,omitempty"` // the limits that the server says; 0: none
	Tokens   int    `json:"tokens,omitempty"`
}

// slot is requests at about one time.
type slot struct {
	At       int64 `json:"t"`
	Sent     int   `json:"n"` // refused ones too
	Accepted int   `json:"a,omitempty"`
	Refused  int   `json:"r,omitempty"`
	Tokens   int   `json:"k,omitempty"`
}

// least returns the smaller of two limits, of which 0 is none.
func least(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// count returns how many requests were sent between two times and not refused, and their tokens.
func (w *window) count(from, to int64) (requests, tokens int) {
	for _, x := range w.Slots {
		if x.At > from && x.At <= to {
			requests, tokens = requests+x.Sent-x.Refused, tokens+x.Tokens
		}
	}
	return requests, tokens
}

// earliest returns the first time, not before at, at which a request of some tokens keeps the limits; 0 is none.
func (w *window) earliest(at, span int64, requests, tokens, cost int) int64 {
	n, k := 0, 0
	for _, x := range w.Slots {
		n, k = n+x.Sent, k+x.Tokens
	}
	for _, x := range w.Slots {
		if x.At+span > at {
			// A request that costs more than the limit can be asked alone only.
			if (requests == 0 || n < requests) && (tokens == 0 || k <= 0 || k+cost <= tokens) {
				break
			}
			at = x.At + span
		}
		n, k = n-x.Sent, k-x.Tokens
	}
	return at
}

// at returns the slot for a time, to the grain. It makes it if there is none.
func (w *window) at(t, grain int64) *slot {
	t -= t % max(grain, 1)
	i, ok := slices.BinarySearchFunc(w.Slots, t, func(x slot, t int64) int { return cmp.Compare(x.At, t) })
	if !ok {
		w.Slots = slices.Insert(w.Slots, i, slot{At: t})
	}
	return &w.Slots[i]
}

// add adds to the counts of a slot.
func (x *slot) add(y slot) {
	x.Sent, x.Accepted = max(x.Sent+y.Sent, 0), max(x.Accepted+y.Accepted, 0)
	x.Refused, x.Tokens = max(x.Refused+y.Refused, 0), max(x.Tokens+y.Tokens, 0)
}
