package code

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
)

// maxSeen is how many files are remembered. When there are more, all are forgotten.
const maxSeen = 10_000

// seenFiles remembers what was in the files below the working directory when the model last read or wrote them, so that
// it is told when something else has changed one since: a command, the user, a subagent. A path means the same file in
// each lane of the member, because what the model knows of a file it takes along to the next lane.
type seenFiles struct {
	seed maphash.Seed
	mu   sync.Mutex
	sums map[string]uint64
}

// newSeenFiles returns a memory of no files.
func newSeenFiles() *seenFiles {
	return &seenFiles{seed: maphash.MakeSeed(), sums: map[string]uint64{}}
}

// noteText remembers a file with its content.
func (s *seenFiles) noteText(at confinedPath, content string) {
	if !at.home {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sums) >= maxSeen {
		clear(s.sums)
	}
	s.sums[at.rel] = maphash.String(s.seed, content)
}

// hasChanged reports whether a file of which the model has seen the content has another one now. One with the marks of
// a conflict has not: the model was told of the conflict, and often writes the whole file to resolve it.
func (s *seenFiles) hasChanged(at confinedPath, content string) bool {
	if strings.Contains("\n"+content, "\n<<<<<<< ") && strings.Contains(content, "\n>>>>>>> ") {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, isKnown := s.sums[at.rel]
	return isKnown && sum != maphash.String(s.seed, content)
}

// refuse returns an error if a file has changed since the model saw it, so that what would become of the change is not
// lost unseen. It refuses once: the same call then shows that the model means it.
func (s *seenFiles) refuse(at confinedPath, content, what string) error {
	if !s.hasChanged(at, content) {
		return nil
	}
	s.noteText(at, content)
	return fmt.Errorf("%s has changed since you read it, and %s it would undo that. Read it again; "+
		"if you still mean it, make the same call once more", at.show, what)
}

// changedNote tells the model that an edit was made in a file which it no longer knows.
func changedNote(name string) string {
	return fmt.Sprintf("\n[%s was changed by a command since you read it: "+
		"read it again before you change more of it]\n", name)
}
