package chat

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/terminal"
	"muster/internal/text"
)

const (
	// maxFound is how many files the menu has; more of them are counted.
	maxFound = 50
	// maxIndexed is how many files are looked at. To match more of them would be felt while typing.
	maxIndexed = 200_000
	// listedFor is how long a list of the files is taken for the current one.
	listedFor = 5 * time.Second
)

// Files finds the files of a repository by parts of their paths. The list is read when it is needed first, in the
// background, and again when it is old; meanwhile the old one serves. Typing never waits for git.
type Files struct {
	// List returns the paths of all files, relative to the repository.
	List func(context.Context) []string
	// Changed is called when a list was read.
	Changed func()
	Now     func() time.Time

	mu        sync.Mutex
	all       []indexedFile
	readAt    time.Time
	isReading bool
}

// indexedFile is a path, and what makes it quick to find.
type indexedFile struct {
	path, lower string
	// letters has a bit for each kind of byte in the path: most paths lack one that is looked for.
	letters uint64
}

// find returns the files whose paths contain what was typed, or its letters in this order, best first, and how many
// there are beside these. A nil index has none.
func (f *Files) find(typed string) (choices []terminal.Choice, more int) {
	if f == nil {
		return nil, 0
	}
	typed = strings.Trim(typed, `"`)
	// Quotation marks are put in with a path that has blanks, and are no part of it.
	best, n := bestMatches(f.current(), strings.ToLower(typed))
	for _, m := range best {
		c := terminal.Choice{Text: Mention(m.path), Label: m.path, Submits: m.path == typed}
		if !strings.HasSuffix(m.path, "/") { // what is in a directory may follow
			c.Text += " "
		}
		choices = append(choices, c)
	}
	return choices, n - len(best)
}

// Mention returns how a path is named in a message.
func Mention(path string) string {
	if strings.ContainsAny(path, " ") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// current returns the list as it is known, and has it read where it is old.
func (f *Files) current() []indexedFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isReading && f.Now().Sub(f.readAt) > listedFor {
		f.isReading = true // one at a time, however long git takes
		go f.read()
	}
	return f.all
}

// read reads the list.
func (f *Files) read() {
	// The lock is not held meanwhile: find must not wait for git.
	all := indexed(f.List(context.Background()))
	f.mu.Lock()
	f.all, f.readAt, f.isReading = all, f.Now(), false
	f.mu.Unlock()
	f.Changed()
}

// indexed returns the files and the directories that they lie in, the upper ones first. A name that cannot be typed is
// left out.
func indexed(paths []string) (all []indexedFile) {
	seen := map[string]bool{}
	add := func(p string) {
		if text.OneLine(p) == p && !strings.Contains(p, `"`) {
			lower := strings.ToLower(p)
			all = append(all, indexedFile{p, lower, lettersOf(lower)})
		}
	}
	for _, p := range paths[:min(len(paths), maxIndexed)] {
		for dir := path.Dir(p); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			add(dir + "/")
		}
		add(p)
	}
	depth := func(f indexedFile) int { return strings.Count(strings.TrimSuffix(f.path, "/"), "/") }
	slices.SortFunc(all, func(a, b indexedFile) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a.path, b.path))
	})
	return all
}

// lettersOf returns a bit for each kind of byte in a text in lower case.
func lettersOf(lower string) (letters uint64) {
	for i := range len(lower) {
		letters |= 1 << (lower[i] & 63)
	}
	return letters
}

// match is a file that was found, and how well it fits: less is better.
type match struct {
	path string
	rank int
}

// bestMatches returns the best files for what was typed, in lower case, and how many there are in all.
func bestMatches(all []indexedFile, typed string) (best []match, n int) {
	letters := lettersOf(typed)
	for _, f := range all {
		if letters&^f.letters != 0 {
			continue
		}
		rank, ok := rankOf(f.lower, typed)
		if !ok {
			continue
		}
		n++
		// Most files of a large repository end here, so only the best are ever sorted.
		if len(best) == maxFound && rank >= best[maxFound-1].rank {
			continue
		}
		// Of files that fit as well the first of the list stays first.
		at, _ := slices.BinarySearchFunc(best, rank+1, func(m match, rank int) int { return m.rank - rank })
		best = slices.Insert(best[:min(len(best), maxFound-1)], min(at, maxFound-1), match{f.path, rank})
	}
	return best, n
}

// rankOf says how well a path fits what was typed: less is better. A name that begins with it is better than one that
// contains it, then comes a directory that does, then one with the letters in their order, the fewer others between
// them the better. Of two that fit alike, the shorter path is better.
func rankOf(path, typed string) (rank int, ok bool) {
	const step = 1 << 12 // more than a path is long
	if typed == "" {
		return 0, true // the list is in order
	}
	name := path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1:]
	length := min(len(path), step-1)
	switch {
	case strings.HasPrefix(name, typed), path == typed:
		return length, true
	case strings.Contains(name, typed):
		return step + length, true
	case strings.HasPrefix(path, typed), strings.Contains(path, "/"+typed):
		return 2*step + length, true
	case strings.Contains(path, typed):
		return 3*step + length, true
	}
	// All letters in the name alone are better than spread over the whole path, unless many others stand between them.
	if gaps, ok := gapsIn(name, typed); ok {
		return (4+gaps)*step + length, true
	}
	gaps, ok := gapsIn(path, typed)
	return (8+gaps)*step + length, ok
}

// gapsIn looks for the letters of what was typed in their order, and returns how many times other letters stand
// between them.
func gapsIn(text, typed string) (gaps int, ok bool) {
	last := -1
	for i := range len(typed) {
		at := strings.IndexByte(text[last+1:], typed[i])
		if at < 0 {
			return 0, false
		}
		if at > 0 && last >= 0 {
			gaps++
		}
		last += 1 + at
	}
	return gaps, true
}
