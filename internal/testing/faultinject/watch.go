package faultinject

// Watch calls f at each point that this process passes, with its name, until stop is called. f is called in the
// goroutine that passes the point, in several at once if need be, and may end it with runtime.Goexit: then the rest of
// what that goroutine was about to do does not happen, as after a kill. It replaces what the process was armed with.
func Watch(f func(point string)) (stop func()) {
	armed.Store(&plan{kind: "watch", watch: f})
	return Disarm
}
