package git

import (
	"context"
	"os"
	"strings"
)

// Identity is whom the runtime commits as.
func (r *Repo) Identity(context.Context) (name, email string) {
	for _, v := range r.env {
		if s, ok := strings.CutPrefix(v, "GIT_AUTHOR_NAME="); ok {
			name = s
		} else if s, ok := strings.CutPrefix(v, "GIT_AUTHOR_EMAIL="); ok {
			email = s
		}
	}
	return name, email
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
