package setup

import (
	"path/filepath"
	"time"
)

// Tidy removes from a user's cache what is too old at a time.
func Tidy(cache string, now time.Time) { _ = tidy(filepath.Join(cache, entriesDir), now) }
