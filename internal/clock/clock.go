// Package clock is where the records that muster writes get their times and their random identifiers.
//
// Every service takes one Clock from the workspace. A test gives another one and gets
// the same records again. The zero Clock is the system's.
//
// A Clock is for what is written down. How long something has taken, timeouts and pauses use package time directly:
// they are not repeated, and testing/synctest controls them.
package clock

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"muster"
)

// Clock gives times and random text. Its zero value uses the system's clock and random numbers.
// A Clock is a value: copies of it share its functions. It is safe for concurrent use if its functions are.
type Clock struct {
	// Time replaces time.Now.
	Time func() time.Time
	// Text replaces crypto/rand.Text: at least 128 random bits in base 32, which no other caller has got.
	Text func() string
}

// Now returns the current time.
func (c Clock) Now() time.Time {
	if c.Time != nil {
		return c.Time()
	}
	return time.Now()
}

// UnixTime returns the current time in Unix seconds, as documents and events have it.
func (c Clock) UnixTime() float64 { return muster.UnixTime(c.Now()) }

// NewText returns a random text of upper-case letters and digits that is unique.
func (c Clock) NewText() string {
	if c.Text != nil {
		return c.Text()
	}
	return rand.Text()
}

// Detach returns a context for the last writes of an operation whose own context may have just ended. It lasts five
// seconds: what the operation has done is written down, and a disk that hangs does not hold up its end for long.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// FormatEnd returns when a wait ends that begins now, with the date where the wait is long or goes on into another
// day.
func FormatEnd(end, now time.Time) string {
	const long = 30 * time.Minute
	isToday := end.YearDay() == now.YearDay() && end.Year() == now.Year()
	if wait := end.Sub(now); wait <= 0 || wait < long && isToday {
		return end.Format("15:04:05")
	}
	return end.Format("2006-01-02 15:04:05")
}

// Sleep waits for d, or until ctx ends; it then returns the error of ctx. It is not part of a Clock, because a pause is
// not written down.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Duration returns how long something takes as people write it, and as settings take it: 10m and not 10m0s.
func Duration(d time.Duration) string {
	text := d.String()
	// Only whole minutes and hours end so; 20m10s does not.
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
