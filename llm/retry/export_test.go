package retry

import "time"

// SetWindow makes the minute of all limits another time. Call it before the first use.
func (l *Limiters) SetWindow(window time.Duration) { l.window = window }
