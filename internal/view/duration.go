package view

import (
	"fmt"
	"strconv"
	"time"

	"muster"
)

// elapsed is a time since the start, for the first column of the progress: at most six characters for 99 hours.
func elapsed(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Age is a length of time in one unit, for tables: 40s, 12m, 3h, 5d.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Duration is Age for sentences: 40 s, 12 min, 3 h, 5 days.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// total is how long something took: 14.2 s, 2 min 5 s, 1 h 2 min.
func total(d time.Duration) string {
	switch {
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Since is how long ago a stamp was, for tables; "" when it is none.
func Since(stamp float64, now time.Time) string {
	if stamp == 0 {
		return ""
	}
	return Age(now.Sub(muster.Time(stamp)))
}

// Clock is a time of day, with the date when it is not today; "-" when it is unknown.
func Clock(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// tokens is a number of tokens: 812, 4.1k, 1.2M.
func tokens(n float64) string {
	switch {
	case n < 1000:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n < 999_950:
		return strconv.FormatFloat(n/1000, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
}

// Count is n and its noun: 1 task, 2 tasks.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
