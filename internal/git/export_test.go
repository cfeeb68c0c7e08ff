package git

import (
	"context"
	"os"
)

// Identity is whom the runtime commits as.
func (r *Repo) Identity(context.Context) (name, email string) {
	return r.identity.name, r.identity.email
}

// Watch returns a function that removes a lock if it was abandoned, and says whether it is gone.
func Watch(path string) (breakIt func() (gone bool, err error)) {
	return func() (gone bool, err error) {
		if info, statErr := os.Lstat(path); statErr == nil && (lock{path, info}).isAbandoned(0) {
			err = os.Remove(path)
		}
		_, there := os.Lstat(path)
		return os.IsNotExist(there), err
	}
}
