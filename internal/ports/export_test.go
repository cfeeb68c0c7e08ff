package ports

// SetFree replaces the look for listeners.
func SetFree(t *Table, isFree func(port int) bool) { t.isFree = isFree }

// Lowest and Highest are the limits of what is given out.
const (
	Lowest  = lowest
	Highest = highest
)
