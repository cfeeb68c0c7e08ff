package setup

import (
	"path/filepath"
	"time"
)

// Marker returns the file that lies beside the entries while something is put into a lane.
func (s *Store) Marker(lane string) string { return s.marker(lane) }

// Tidy removes from a user's cache what is too old at a time.
func Tidy(cache string, now time.Time) { _ = tidy(filepath.Join(cache, entriesDir), now) }
