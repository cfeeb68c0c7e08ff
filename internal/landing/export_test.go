package landing

var FileList = fileList

// Waiting returns how many owners wait for a decision about their landing.
func Waiting(l *Lander) int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.present
}

var Dependants = dependants
