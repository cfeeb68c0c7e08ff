package workspace

import "sync"

// lazy is a value that is made when it is first asked for. One that could not be made is tried again.
type lazy[T comparable] struct {
	mu   sync.Mutex
	made T
}

// get returns the value, which it makes first where nobody has.
func (l *lazy[T]) get(make func() (T, error)) (T, error) {
	// The lock is held while the value is made, so that nobody makes a second one.
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.made == *new(T) {
		l.made, err = make() // the zero value with an error
	}
	return l.made, err
}

// must is get for what cannot fail.
func (l *lazy[T]) must(make func() T) T {
	v, _ := l.get(func() (T, error) { return make(), nil })
	return v
}

// value returns what was made, or the zero value.
func (l *lazy[T]) value() T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made
}
