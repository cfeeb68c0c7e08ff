// Package failures finds in the output of a check what has failed: tests, and errors of compilers, each with its file
// and line where the output names them.
//
// A check is any command, so nothing is known of the programs that it runs. A Finder knows how common test runners and
// compilers print a failure, and reads files in the XML of JUnit, which most other runners can write. In the output of
// others it finds nothing: the caller shows the last lines of the output in any case. It never decides whether a check
// has failed.
//
// The files: failures.go (what people read of a failure) with its table formats.go, names.go (the names of all failed
// tests, for comparing two checks), gotest.go (go test -json), junit.go (reports), current.go (the test that runs now),
// ran.go (whether any test has run).
package failures

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// Failure is one test that failed, or one error.
type Failure struct {
	Name string // of the test; "" for an error of a compiler
	// Place is the file with the line, as the output names them, such as "a/b.go:12"; "" where it names none.
	Place string
	Text  string // what went wrong: the lines that the output has about it, each with its end

	isVague bool // it is a failure only if a place was found: any program prints such a line
}

// The limits of what is found: people do not read a list of a thousand errors.
const (
	maxFailures = 50
	maxLines    = 12       // of a failure's text
	maxLine     = 300      // bytes of a line that are shown
	maxRead     = 64 << 10 // bytes of a line that are searched
	maxBlock    = 80       // lines after the first one of a test in which its text and its place are looked for
)

// Finder finds failures in what is written to it. Its zero value is ready for use; it is for one goroutine.
type Finder struct {
	all    []Failure
	byName map[string]int // where in all the failure of a test is
	open   *Failure       // to which the next lines belong; nil: to none
	format *format        // of the open one
	lines  int            // lines of the open one so far
	before []string       // indented lines since a test of Go began, whose name comes last with -v
	isRun  bool           // such a test has begun
	above  string         // the last line that is not indented

	ran      ran    // whether any test has run
	names    names  // of all tests that have failed, as the console tells them
	report   report // what the reports of JUnit say
	packages map[string]*goPackage
	rest     []byte // the beginning of a line
}

// Write takes a part of the output. It never fails.
func (f *Finder) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, isWhole := bytes.Cut(p, []byte("\n"))
		f.rest = append(f.rest, line[:min(len(line), maxRead-len(f.rest))]...)
		if isWhole {
			f.wholeLine()
		}
		p = rest
	}
	return n, nil
}

// wholeLine takes the line that is read.
func (f *Finder) wholeLine() {
	raw := f.rest
	f.rest = f.rest[:0]
	if e, ok := newGoEvent(raw); ok {
		f.goEvent(e)
		return
	}
	line := strings.TrimRight(strings.ToValidUTF8(string(raw), "?"), " \t\r")
	if strings.ContainsRune(line, '\x1b') {
		line = ansi.Strip(line)
	}
	f.line(line, true)
}

// Failures returns the failures that were found: first those in the output, in the order in which they were printed,
// and then those that only reports name. Nothing is written after it.
func (f *Finder) Failures() []Failure {
	f.wholeLine()
	f.all = slices.DeleteFunc(f.all, func(x Failure) bool { return x.isVague && x.Place == "" })
	printed := f.all
	for _, x := range f.report.all {
		// A console has another name for a test than a report has, which ends alike.
		isSame := func(old Failure) bool { return old.Name != "" && lastPart(old.Name) == lastPart(x.Name) }
		if !slices.ContainsFunc(printed, isSame) && len(f.all) < maxFailures {
			f.all = append(f.all, x)
		}
	}
	return f.all
}

// lastPart returns the last part of the name of a test.
func lastPart(name string) string { return name[strings.LastIndexAny(name, ".:/> ")+1:] }

// line takes one line without colours. hasNames says that the names of tests are taken from it too; go test -json tells
// them in other events than the lines.
func (f *Finder) line(line string, hasNames bool) {
	x, at := formatOf(line)
	f.ran.take(line)
	if line != "" && line[0] != ' ' {
		f.above = line
	}
	if x != nil && hasNames {
		f.names.take(x, line, at)
	}
	if len(f.all) >= maxFailures {
		return
	}
	if strings.HasPrefix(line, "=== ") {
		f.before, f.isRun, f.open = nil, true, nil
	} else if goEnd().MatchString(line) {
		defer func() { f.before, f.isRun = nil, false }()
	}
	if x == nil || !x.begins() || x.inside && f.open != nil {
		line = text.CutBytes(line, maxLine)
		f.add(line)
		if f.isRun && len(f.before) < maxLines && strings.TrimLeft(line, " \t") != line {
			f.before = append(f.before, line)
		}
		return
	}
	group := func(name string) string { return text.CutBytes(x.group(line, at, name), maxLine) }
	file := group("file")
	if x.below {
		file = text.CutBytes(f.above, maxLine)
	}
	f.note(Failure{Name: group("name"), Place: place(file, group("line")), Text: group("text"), isVague: x.vague}, x)
	for _, said := range f.before {
		if x.lastWords {
			f.add(said)
		}
	}
}

// goEnd matches the line with which a test of Go ends.
var goEnd = lazyregexp.New(`^\s*--- (PASS|FAIL|SKIP): `)

// note adds a failure, or what is new about one that is there already: runners name their failures again at the end.
func (f *Finder) note(found Failure, x *format) {
	f.open, f.format, f.lines = nil, x, 0
	key := found.Name
	if x.summary { // it names the file as well
		_, key, _ = strings.Cut(key, "::")
		key = strings.ReplaceAll(cmp.Or(key, found.Name), "::", ".")
	}
	if key == "" {
		key = found.Place + "\n" + found.Text
	} else { // two files, or two crates, may have tests of one name
		key = f.names.scope + key
	}
	at, isKnown := f.byName[key]
	if !isKnown {
		at = len(f.all)
		if f.byName == nil {
			f.byName = map[string]int{}
		}
		f.byName[key] = at
		f.all = append(f.all, Failure{Name: found.Name, isVague: found.isVague})
	}
	f.merge(at, found)
	if x.ends != nil {
		f.open = &f.all[at]
	}
}

// merge adds to a failure what another line says of it.
func (f *Finder) merge(at int, found Failure) {
	to := &f.all[at]
	to.Place = cmp.Or(to.Place, found.Place)
	if len(found.Name) > len(to.Name) {
		to.Name = found.Name
	}
	if found.Text != "" && (to.Text == "" || !f.format.summary) {
		to.add(found.Text)
	}
}

// add takes a line of the open failure, if one is open.
func (f *Finder) add(line string) {
	if f.open == nil {
		return
	}
	if f.lines++; f.lines > maxBlock || f.format.ends().MatchString(line) {
		f.open = nil
		return
	}
	to, trimmed := f.open, strings.TrimSpace(line)
	to.findPlace(line)
	if isNoise(trimmed) || f.format.keep != nil && !f.format.keep().MatchString(line) {
		return
	}
	to.add(trimmed)
}

// add adds a line to the text, unless it has it, or has enough.
func (x *Failure) add(line string) {
	if line != "" && strings.Count(x.Text, "\n") < maxLines && !strings.Contains("\n"+x.Text, "\n"+line+"\n") {
		x.Text += line + "\n"
	}
}

// findPlace takes the file and the line that a line names, unless there are some.
func (x *Failure) findPlace(line string) {
	if strings.Contains(x.Place, ":") || isForeign(line) {
		return
	}
	for _, match := range placePatterns {
		if m := match().FindStringSubmatch(line); m != nil {
			x.Place = place(m[1], m[2])
			return
		}
	}
}

// place returns a file with its line.
func place(file, line string) string {
	file = strings.TrimPrefix(strings.TrimPrefix(file, "file://"), "./")
	if file == "" || line == "" {
		return file
	}
	return file + ":" + line
}

// Lines returns failures as a model or a person reads them, one after the other, in at most so many bytes. It says how
// many it leaves out.
func Lines(all []Failure, limit int) string {
	var b strings.Builder
	for i, x := range all {
		text := "- " + x.Title() + "\n"
		for line := range strings.Lines(x.Text) {
			if strings.TrimSpace(line) != x.first() || x.Name != "" {
				text += "    " + strings.TrimRight(line, "\n") + "\n"
			}
		}
		if b.Len()+len(text) > limit {
			if text = "- " + x.Title() + "\n"; b.Len()+len(text) > limit {
				fmt.Fprintf(&b, "- and %d more\n", len(all)-i)
				break
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// first returns the first line of the text.
func (x Failure) first() string {
	line, _, _ := strings.Cut(x.Text, "\n")
	return line
}

// Title returns a failure in one line: its name, its place, or what went wrong where it has no name.
func (x Failure) Title() string {
	switch {
	case x.Name == "" && x.Place == "":
		return x.first()
	case x.Name == "":
		return x.Place + ": " + x.first()
	case x.Place == "" || strings.Contains(x.Name, x.Place):
		return x.Name
	}
	return x.Name + " (" + x.Place + ")"
}
