package view

import (
	"fmt"
	"strconv"
	"time"

	"muster"
)

// Age is a length of time in one unit, for tables: 40s, 12m, 3h, 5d. A negative one, as when two clocks differ, is 0s.
func Age(d time.Duration) string { return inOneUnit(d, "s", "m", "h", "d") }

// Duration is Age for sentences: 40 s, 12 min, 3 h, 5 days.
func Duration(d time.Duration) string { return inOneUnit(d, " s", " min", " h", " days") }

// inOneUnit rounds d down to whole seconds, minutes, hours or days. Two days is the least that counts in days.
func inOneUnit(d time.Duration, second, minute, hour, day string) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + second
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + minute
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + hour
	}
	return strconv.Itoa(int(d.Hours()/24)) + day
}

// elapsed is a time since the start, for the first column of the progress: at most six characters for 99 hours.
func elapsed(d time.Duration) string { return inTwoUnits(max(d, 0), "%.1fs", "%dm%02ds", "%dh%02dm") }

// longDuration is how long something took, in a sentence: 14.2 s, 2 min 5 s, 1 h 2 min.
func longDuration(d time.Duration) string {
	return inTwoUnits(d, "%.1f s", "%d min %d s", "%d h %d min")
}

// inTwoUnits formats d as tenths of a second, minutes and seconds, or hours and minutes. What would be rounded to 60.0
// seconds is shown as a minute.
func inTwoUnits(d time.Duration, seconds, minutes, hours string) string {
	switch {
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf(seconds, d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf(minutes, int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf(hours, int(d.Hours()), int(d.Minutes())%60)
}

// SinceStamp returns the age of a stamp for tables, or "" if the stamp is 0.
func SinceStamp(stamp float64, now time.Time) string {
	if stamp == 0 {
		return ""
	}
	return Age(now.Sub(muster.Time(stamp)))
}

// Clock returns a time of day, with the date when it is not today, or "-" when it is unknown. It is in the time zone of
// whoever reads it.
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

// tokens formats a number of tokens: 812, 4.1k, 1.2M. What would be rounded to 1000.0k is shown as a million.
func tokens(n float64) string {
	switch {
	case n < 1000:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n < 999_950:
		return strconv.FormatFloat(n/1000, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
}
