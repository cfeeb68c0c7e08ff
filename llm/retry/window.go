package retry

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"muster/llm"
)

// This file decides when an account may be asked. It is a function of a record and the time, and knows no clock, file
// or goroutine. All times are in milliseconds of Unix time, because processes share them.

// firstFree is how many requests a minute an account gets without a look at whether those before them were accepted,
// until it has accepted more.
const firstFree = 10

// unprovenShare is the share of the requests of a minute that may be unanswered where more are asked than were ever
// accepted: a limit that nobody knows is then passed by one request in so many.
const unprovenShare = 25

// unansweredTimeout is the part of a window after which a request counts as accepted: a refusal comes sooner.
const unansweredTimeout = 20

// record is what is known of the limits of an account. A file has its JSON.
type record struct {
	Saved    int64              `json:"saved"`
	Until    int64              `json:"until"` // nobody asks before
	Why      string             `json:"why,omitempty"`
	Epoch    int                `json:"epoch"`    // rises when the reserved times no longer hold
	Refusals int                `json:"refusals"` // in a row
	Refused  int64              `json:"refused"`  // the last one
	Proven   int                `json:"proven"`   // requests of one window that were accepted
	Guess    int                `json:"guess"`    // the limit, by what was accepted before a refusal; 0: no idea
	Step     int                `json:"step"`     // by which the guess is raised next
	Raise    int64              `json:"raise"`    // when
	Interval int64              `json:"interval"` // from a refusal to that
	Last     int64              `json:"last"`     // request, or time that is reserved for one
	Pending  []int64            `json:"pending"`  // when the requests were sent that are not answered
	By       string             `json:"by"`       // the process that asked last
	Others   int64              `json:"others"`   // when another process had asked before that one, for the last time
	Key      window             `json:"key"`      // all requests
	Models   map[string]*window `json:"models"`   // those for each model whose server says a limit
}

// ticket is one request of an account.
type ticket struct {
	llm.Account
	by        string // the process that makes it
	isOnly    bool   // no other request of that process waits
	estimate  int    // of its tokens
	tokens    int    // that are noted of it
	reserved  int64  // its time, which holds for the epoch; 0: it has none
	epoch     int
	sent      int64 // 0: it waits
	answers   int
	hasLooked bool // whether it may be tried though nobody knows that it is accepted
	// isPending: it is not answered, or it is refused and that is not noted yet.
	isPending bool
	isFull    bool // the answer says that a limit is used up
}

// rules decide with the length of a window, in milliseconds.
type rules struct{ window int64 }

// span returns how long a request counts: a little longer than the window, because it arrives later than it is sent.
func (r rules) span() int64 { return r.window + max(r.window/60, 1) }

// open prepares a record for use. A clock that was set back takes the times of the record along.
func (r rules) open(s *record, now int64) {
	if s.Saved == 0 {
		s.Proven, s.Interval = firstFree, r.window
	}
	if back := s.Saved - now; back > r.window/60 {
		for _, t := range []*int64{&s.Until, &s.Refused, &s.Raise, &s.Last, &s.Others} {
			*t -= back
		}
		for i := range s.Pending {
			s.Pending[i] -= back
		}
		for _, w := range s.windows("") {
			for i := range w.Slots {
				w.Slots[i].At -= back
			}
		}
	}
	s.Saved = now
	isOld := func(x slot) bool { return x.At <= now-r.span() }
	for _, w := range s.windows("") {
		w.Slots = slices.DeleteFunc(w.Slots, isOld)
	}
	s.Pending = slices.DeleteFunc(s.Pending, func(t int64) bool { return t <= now-r.window/unansweredTimeout })
	for s.Guess > 0 && now >= s.Raise { // a guess that was wrong heals, faster and faster
		s.Guess, s.Raise, s.Step = s.Guess+s.Step, s.Raise+r.window, 2*s.Step
		if s.Guess > 4*max(s.Proven, firstFree) {
			s.Guess, s.Interval = 0, r.window
		}
	}
}

// windows returns the window of the key and that of a model, or those of all models.
func (s *record) windows(model string) []*window {
	all := []*window{&s.Key}
	for name, w := range s.Models {
		if model == "" || name == model {
			all = append(all, w)
		}
	}
	return all
}

// ask returns when the request may be made; ok is true if that is now, and it is then noted as sent. A request that has
// to wait for its turn in the window has its time reserved, so that all who wait, in all processes, are served in the
// order in which they came.
func (r rules) ask(s *record, now int64, t *ticket) (at int64, ok bool) {
	if t.epoch != s.Epoch {
		t.reserved = 0
	}
	if s.By != t.by && len(s.Key.Slots) > 0 {
		s.Others = now
	}
	s.By = t.by
	if t.reserved == 0 {
		if at := r.earliest(s, now, t); at > now {
			t.reserved, t.epoch = at, s.Epoch
			r.add(s, at, t)
			return at, false
		}
	}
	if t.reserved > now {
		return t.reserved, false
	}
	if isProven, mayTry := r.isProven(s, now, t); !isProven && !(mayTry && (t.hasLooked || r.isAlone(s, now, t))) {
		// It looks again soon, and twice in any case if there are others: whoever has just had an answer is not before
		// them.
		t.hasLooked = true
		return now + 1 + r.window/30000 + rand.N(r.window/20000+1), false
	}
	if t.reserved == 0 {
		r.add(s, now, t)
	} else if t.reserved < now { // it goes later than it could
		r.cancel(s, t)
		r.add(s, now, t)
	}
	t.sent, t.reserved = now, 0
	t.isPending = true
	s.Pending = append(s.Pending, now)
	return now, true
}

// earliest returns the first time at which a request keeps all limits.
func (r rules) earliest(s *record, now int64, t *ticket) int64 {
	at := max(now, s.Until)
	if n := len(s.Key.Slots); n > 0 {
		at = max(at, s.Key.Slots[n-1].At) // not before those who came first
	}
	requests, w := least(t.Requests, s.Guess), cmp.Or(s.Models[t.Model], &window{})
	at = s.Key.earliest(at, r.span(), requests, t.Tokens, t.tokens)
	if t.Requests == 0 { // else the user knows better
		requests = least(w.Requests, s.Guess)
		at = w.earliest(at, r.span(), w.Requests, 0, 0)
	}
	if t.Tokens == 0 {
		at = w.earliest(at, r.span(), 0, w.Tokens, t.tokens)
	}
	// The first part of a window may be used at once, and the rest is spread over it: no process gets all of it, and
	// nobody waits for a whole window.
	n, _ := s.Key.count(at-r.span(), at)
	if requests > 0 && n >= requests/3 {
		at = max(at, s.Last+r.span()/int64(requests))
	} else if requests == 0 && n >= firstFree {
		apart := r.window / 600
		if len(s.Pending) == 0 { // all that were sent are answered: it is only so that processes take turns
			apart = r.window / 3000
		}
		if len(s.Pending) == 0 && r.isAlone(s, now, t) {
			apart = 0
		}
		at = max(at, s.Last+apart/int64(max(1, n/unprovenShare)))
	}
	if _, n := w.count(at-r.span(), at); w.Tokens > 0 && n >= w.Tokens/3 {
		at = max(at, s.Last+r.span()*int64(min(t.tokens, w.Tokens))/int64(w.Tokens))
	}
	return at
}

// isAlone reports whether a request takes no other's turn: only its process has asked in this window, and none else of
// that one waits.
func (r rules) isAlone(s *record, now int64, t *ticket) bool {
	return t.isOnly && (s.Others == 0 || now-s.Others > r.span())
}

// isProven reports whether it is known that one more request is accepted. If it is not, mayTry reports whether few
// enough such requests are unanswered.
func (r rules) isProven(s *record, now int64, t *ticket) (isProven, mayTry bool) {
	w := s.Models[t.Model]
	isKnown := t.Requests > 0 || w != nil && w.Requests > 0
	n, _ := s.Key.count(0, now)
	return n < s.Proven || isKnown && s.Guess == 0 && s.Refusals == 0, len(s.Pending) < max(1, n/unprovenShare)
}

// add notes a request at a time.
func (r rules) add(s *record, at int64, t *ticket) {
	for _, w := range s.windows(cmp.Or(t.Model, " ")) {
		w.at(at, r.window/120).add(slot{Sent: 1, Tokens: t.tokens})
	}
	s.Last = max(s.Last, at)
}

// cancel takes back the time that is reserved for a request.
func (r rules) cancel(s *record, t *ticket) {
	if t.reserved == 0 || t.epoch != s.Epoch {
		return
	}
	for _, w := range s.windows(cmp.Or(t.Model, " ")) {
		w.at(t.reserved, r.window/120).add(slot{Sent: -1, Tokens: -t.tokens})
	}
}

// answered notes the answer to a request. A further answer to the same one means that it was sent again.
func (r rules) answered(s *record, now int64, t *ticket, a llm.Answer) {
	if t.answers++; t.answers > 1 {
		r.add(s, now, t)
		t.sent = now
	}
	if a.Status != 429 {
		s.settle(t)
		s.Key.at(t.sent, r.window/120).add(slot{Accepted: 1})
		s.Refusals = 0
		s.Proven = max(s.Proven, s.accepted(t.sent-r.window))
	}
	t.isFull = isUsedUp(a.Requests) || isUsedUp(a.Tokens)
	requests, tokens := r.limit(a.Requests), r.limit(a.Tokens)
	w := s.Models[t.Model]
	if w == nil {
		if requests == 0 && tokens == 0 {
			return
		}
		if s.Models == nil {
			s.Models = map[string]*window{}
		}
		w = &window{}
		s.Models[t.Model] = w
	}
	w.Requests, w.Tokens = cmp.Or(requests, w.Requests), cmp.Or(tokens, w.Tokens)
	// What is used up and not by requests that are known is used by others. It comes back when the limit is reset.
	own := slot{}
	for _, x := range w.Slots {
		if x.At <= now {
			own.add(x)
		}
	}
	if lack := a.Requests.Limit - a.Requests.Remaining - own.Sent; requests > 0 && lack > 0 {
		w.at(r.begin(now, a.Requests), r.window/120).add(slot{Sent: lack})
	}
	if lack := a.Tokens.Limit - a.Tokens.Remaining - own.Tokens; tokens > 0 && lack > 0 {
		w.at(r.begin(now, a.Tokens), r.window/120).add(slot{Tokens: lack})
	}
}

// begin returns when that was used which comes back when a limit is reset.
func (r rules) begin(now int64, q llm.Quota) int64 {
	return now - r.span() + min(cmp.Or(q.Reset.Milliseconds(), r.window), r.span())
}

// limit returns the limit of a window that a server says. One that takes longer to be reset is of a day, perhaps.
func (r rules) limit(q llm.Quota) int {
	if q.Reset > time.Duration(r.window)*time.Millisecond*3/2 {
		return 0
	}
	return q.Limit
}

// isUsedUp reports whether nothing is left of a limit.
func isUsedUp(q llm.Quota) bool { return q.Limit > 0 && q.Remaining == 0 }

// settle notes that a request is no longer unanswered.
func (s *record) settle(t *ticket) {
	if i := slices.Index(s.Pending, t.sent); i >= 0 && t.isPending {
		s.Pending = slices.Delete(s.Pending, i, i+1)
	}
	t.isPending = false
}

// spent notes how many tokens a request cost in place of those that were assumed.
func (r rules) spent(s *record, t *ticket, tokens int) {
	for _, w := range s.windows(cmp.Or(t.Model, " ")) {
		w.at(t.sent, r.window/120).add(slot{Tokens: tokens - t.tokens})
	}
	t.tokens = tokens
}

// accepted returns how many requests since a time were accepted.
func (s *record) accepted(since int64) (n int) {
	for _, x := range s.Key.Slots {
		if x.At > since {
			n += x.Accepted
		}
	}
	return n
}

// refused notes that a request was refused for the rate. Nobody asks before until, and the times that were reserved no
// longer hold. A refusal without a reason says that so many as were accepted in a window are the limit: at once if they
// are many, and otherwise only if waiting a little does not help.
func (r rules) refused(s *record, now int64, t *ticket, until int64, why string) {
	s.settle(t)
	r.spent(s, t, 0)
	x := s.Key.at(t.sent, r.window/120)
	x.add(slot{Refused: 1})
	if x.Accepted > x.Sent-x.Refused { // its answer had begun
		x.Accepted--
	}
	if t.sent > s.Refused { // else it was under way when another was refused
		s.Refused = now
		s.Refusals++
		if n := s.accepted(t.sent - r.window); !t.isFull {
			s.Proven = n
			if n >= firstFree || s.Refusals > 2 && n > 0 {
				r.guess(s, now, n)
			}
		}
	}
	// Whoever is refused again and again waits longer and longer, whichever process asks.
	if until = max(until, now+min(r.window/60<<max(min(s.Refusals-1, 6), 0), r.window)); until > s.Until {
		s.Until, s.Why = until, why
		s.Epoch++
		for _, w := range s.windows("") {
			w.Slots = slices.DeleteFunc(w.Slots, func(x slot) bool { return x.At > now })
		}
		s.Last = min(s.Last, now)
	}
}

// guess takes n for the limit of a window. The more often a raised guess proves wrong, the later it is raised again.
func (r rules) guess(s *record, now int64, n int) {
	if s.Guess > 0 {
		s.Interval = min(2*s.Interval, 8*r.window)
	} else {
		s.Interval = r.window
	}
	s.Guess, s.Step, s.Raise = n, max(1, n/unprovenShare), now+s.Interval
}
