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
	l := &watchedLock{path: path}
	return func() (gone bool, err error) {
		if l.exists() && l.isAbandoned() {
			err = removeLock(path)
		}
		_, there := os.Lstat(path)
		return os.IsNotExist(there), err
	}
}
