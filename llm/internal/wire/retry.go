package wire

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter is how long the answer says to wait: retry-after-ms, retry-after in
// seconds or as a date, else the reset of a limit that has nothing remaining. 0 if it says nothing.
// What is said as a time is counted from the answer's own Date; now is taken where it has none.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return capped(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			// 0 says at once, which is not the same as saying nothing.
			return max(capped(s), time.Millisecond)
		}
		if t, err := http.ParseTime(v); err == nil {
			return until(t, h, now)
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
				d = max(d, until(t, h, now))
			}
		}
	}
	return d
}

const (
	year = 365 * 24 * time.Hour
	// unsure is the longest wait for a time that only our own clock could measure: it may be a day behind.
	// Who comes back too early is told again.
	unsure = time.Hour
)

// until is how long it is to a time that the answer names. A time gone by says at once.
func until(t time.Time, h http.Header, now time.Time) time.Duration {
	most := unsure
	if date, err := http.ParseTime(h.Get("Date")); err == nil { // both by the clock of who says so
		now, most = date, year
	}
	return min(max(t.Sub(now), time.Millisecond), most)
}

// capped keeps an absurd number of seconds inside a Duration.
func capped(s float64) time.Duration {
	if !(s > 0) { // not a number, too
		return 0
	}
	if s > year.Seconds() {
		return year
	}
	return time.Duration(s * float64(time.Second))
}
