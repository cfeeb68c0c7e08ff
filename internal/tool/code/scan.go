package code

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp/syntax"
	"strings"
	"syscall"
)

// The limits on what one call may read and match. A file may have any size without taking room on the disk, and a
// short pattern may take hours to match.
const (
	maxScannedBytes = 256 << 20 // of a file that read_file reads to find a line
	maxGrepBytes    = 32 << 20  // of each file that grep searches
	maxGrepTotal    = 4 << 30   // of all files that one call of grep searches
	maxPattern      = 2000      // bytes of a pattern
	maxInstructions = 5000      // of a compiled regular expression, each of which may be tried at each byte
	maxSteps        = 320 << 20 // instructions times bytes that are matched without a look at the time
	minSearched     = 64 << 10  // bytes that are searched at once, however large the expression is
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

// compile parses a regular expression, and compiles it to instructions. One that is too large to be matched quickly is
// refused.
func compile(pattern string) (parsed *syntax.Regexp, program *syntax.Prog, err error) {
	if len(pattern) > maxPattern {
		return nil, nil, fmt.Errorf("the pattern has %d bytes, and may have %d", len(pattern), maxPattern)
	}
	parsed, err = syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, nil, err
	}
	program, err = syntax.Compile(parsed.Simplify())
	if err == nil && len(program.Inst) > maxInstructions {
		err = fmt.Errorf("the pattern stands for %d steps, and may for %d: repeat less in it", len(program.Inst),
			maxInstructions)
	}
	if err != nil {
		return nil, nil, err
	}
	return parsed, program, nil
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
