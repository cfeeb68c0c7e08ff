package git

import (
	"context"
	"os"
)

// Identity is whom the runtime commits as.
func (r *Repo) Identity(context.Context) (name, email string) {
	return r.identity.name, r.identity.email
}

// Watch watches a lock; what it returns breaks it if it was abandoned, and says whether it is gone.
func Watch(path string) (breakIt func() (gone bool, err error)) {
	l := watchLocks([]string{path})[0]
	return func() (bool, error) {
		err := l.breakAbandoned()
		_, there := os.Lstat(path)
		return os.IsNotExist(there), err
	}
}
