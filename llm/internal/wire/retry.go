package wire

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns how long the answer says to wait, or 0 if it says nothing. It reads retry-after-ms,
// retry-after in seconds or as a date, and otherwise the reset of a limit that has nothing remaining. A
// time is counted from the answer's own Date, or from now if it has none.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampSeconds(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			// 0 says at once, which is not the same as saying nothing.
			return max(clampSeconds(s), time.Millisecond)
		}
		if t, err := http.ParseTime(v); err == nil {
			return waitUntil(t, h, now)
		}
	}
	var d time.Duration
	for _, of := range []string{"requests", "tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+of) == "0" {
			if r, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + of)); err == nil {
				d = max(d, r)
			}
		}
		if h.Get("Anthropic-Ratelimit-"+of+"-Remaining") == "0" {
			if t, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+of+"-Reset")); err == nil {
				d = max(d, waitUntil(t, h, now))
			}
		}
	}
	return d
}

// The longest times that a server is believed.
const (
	maxWait = 365 * 24 * time.Hour
	// maxUntrustedWait is the longest wait for a time that only our own clock could measure, which may be a
	// day behind. Whoever comes back too early is told to wait again.
	maxUntrustedWait = time.Hour
)

// waitUntil returns how long it is to a time that the answer names. A time in the past means at once.
func waitUntil(t time.Time, h http.Header, now time.Time) time.Duration {
	most := maxUntrustedWait
	if date, err := http.ParseTime(h.Get("Date")); err == nil { // both by the clock of who says so
		now, most = date, maxWait
	}
	return min(max(t.Sub(now), time.Millisecond), most)
}

// clampSeconds converts seconds to a Duration and limits absurd values.
func clampSeconds(s float64) time.Duration {
	if !(s > 0) { // not a number, too
		return 0
	}
	if s > maxWait.Seconds() {
		return maxWait
	}
	return time.Duration(s * float64(time.Second))
}
