package code

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// The limits on what one call may read and list. A file may have any size without taking room on the disk.
const (
	maxScannedBytes = 256 << 20 // of a file that read_file reads to find a line
	maxGrepBytes    = 32 << 20  // of each file that grep searches
	maxPattern      = 2000      // bytes of a pattern
	maxAlternatives = 1000      // that the braces of a glob pattern stand for
	maxListed       = 200_000   // files that are listed where git cannot list them
	maxDepth        = 200       // of the directories that are listed there; each level is opened from the top
)

// openRegular opens the file for reading, which must be a regular one. It never waits: a pipe that took the place of
// the file after it was looked at is recognised here.
func (s confinedPath) openRegular(rel string) (*os.File, error) {
	f, err := s.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a regular file", s.show)
	}
	return f, nil
}

// scanner reads a file up to a limit, and until ctx ends.
type scanner struct {
	ctx   context.Context
	file  io.Reader
	left  int64
	isCut bool // the limit was met
}

// Read reads from the file. The limit ends it like the end of the file; the end of ctx is its error.
func (s *scanner) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	if s.isCut {
		return 0, io.EOF
	}
	n, err := s.file.Read(p[:min(int64(len(p)), s.left+1)])
	if s.left -= int64(n); s.left < 0 {
		s.isCut = true
		return n - 1, io.EOF
	}
	return n, err
}

// checkGlob returns why a glob pattern cannot be matched quickly, or "". Each brace is tried with each of the others.
func checkGlob(pattern string) (problem string) {
	if len(pattern) > maxPattern {
		return fmt.Sprintf("the pattern has %d bytes, and may have %d.", len(pattern), maxPattern)
	}
	alternatives := 1
	for _, group := range strings.Split(pattern, "{")[1:] {
		if alternatives *= 1 + strings.Count(group, ","); alternatives > maxAlternatives {
			return fmt.Sprintf("the braces stand for more than %d patterns: use fewer of them.", maxAlternatives)
		}
	}
	return ""
}
