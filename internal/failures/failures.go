// Package failures finds in the output of a check what has failed: tests, and errors of compilers and linters, each
// with its file and line where the output names them.
//
// A check is any command, so nothing is known of the programs that it runs. Find knows how the usual test runners
// and compilers print a failure (formats.go has a row for each), and finds nothing in the output of others: whoever
// shows the result adds the last lines of the output in any case. It never decides whether a check has failed.
package failures

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/lazyregexp"
	"muster/internal/safetext"
)

// Failure is one test that failed, or one error.
type Failure struct {
	Name string // of the test; "" for an error of a compiler
	// Place is the file with the line, as the output names them, such as "a/b.go:12"; "" where it names none.
	Place string
	Text  string // what went wrong: the lines that the output has about it, each with its end

	isVague bool // it is a failure only if a place was found: any program prints such a line
}

// The limits of what is found. A file of which every line is an error is not a list that anybody reads.
const (
	maxFailures = 50
	maxLines    = 12       // of a failure's text
	maxLine     = 300      // bytes of a line that are shown
	maxRead     = 64 << 10 // bytes of a line that are looked at
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
	file   string         // the last line that was nothing but a file: linters print the errors below it
	goJSON map[string][]string

	names   names  // of all tests that have failed, as the console tells them
	report  report // what the reports of JUnit say
	printed printed

	rest   []byte // the beginning of a line
	isLong bool   // it is so long that the rest of it is left out
}

// Write takes a part of the output. It never fails.
func (f *Finder) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, isWhole := bytes.Cut(p, []byte("\n"))
		p = rest
		if !f.isLong {
			f.rest = append(f.rest, line[:min(len(line), MaxReport)]...)
			limit := maxRead
			if len(f.printed.text) > 0 || isReportLine(f.rest) {
				limit = MaxReport // many reports are one line
			}
			if f.isLong = len(f.rest) >= limit; f.isLong {
				f.rest = f.rest[:limit]
			}
		}
		if isWhole {
			f.wholeLine()
		}
	}
	return n, nil
}

// wholeLine takes the line that is read.
func (f *Finder) wholeLine() {
	if !f.reportLine(f.rest) {
		f.consoleLine(f.rest)
	}
	f.rest, f.isLong = f.rest[:0], false
}

// consoleLine takes a line that belongs to no report.
func (f *Finder) consoleLine(raw []byte) {
	raw = raw[:min(len(raw), maxRead)]
	f.names.line(raw)
	if len(f.all) < maxFailures {
		f.line(raw)
	}
}

// Failures returns the failures that were found: first those in the output, in the order in which they were printed,
// and then those that only reports name. Nothing is written after it.
func (f *Finder) Failures() []Failure {
	f.wholeLine()
	f.endReport()
	f.all = slices.DeleteFunc(f.all, func(x Failure) bool { return x.isVague && x.Place == "" })
	f.mergeReports()
	return f.all
}

// line takes one line.
func (f *Finder) line(raw []byte) {
	if bytes.HasPrefix(raw, []byte(`{"`)) && f.goEvent(raw) {
		return
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(raw), "?"), " \t\r")
	if strings.ContainsRune(text, '\x1b') {
		text = ansi.Strip(text)
	}
	f.text(safetext.Cut(text, maxLine))
}

// text takes one line without colours.
func (f *Finder) text(line string) {
	if strings.HasPrefix(line, "=== ") || goEnd().MatchString(line) {
		if isBegun := strings.HasPrefix(line, "=== "); isBegun {
			f.before, f.isRun, f.open = f.before[:0], true, nil
		} else {
			defer func() { f.before, f.isRun = f.before[:0], false }()
		}
	}
	if f.begin(line) {
		return
	}
	f.add(line)
	if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		if f.isRun && len(f.before) < maxLines {
			f.before = append(f.before, line)
		}
	} else {
		f.file = ""
		if fileLine().MatchString(line) {
			f.file = line
		}
	}
}

// goEnd matches the line with which a test of Go ends.
var goEnd = lazyregexp.New(`^\s*--- (PASS|FAIL|SKIP): `)

// fileLine matches a line that is nothing but the name of a file.
var fileLine = lazyregexp.New(`^[\w./@+-]+/[\w.@+-]+\.\w{1,5}$`)

// begin takes a line that begins a failure, and reports whether it is one.
func (f *Finder) begin(line string) bool {
	for i := range formats {
		x := &formats[i]
		if !strings.Contains(line, x.has) || x.inside && f.open != nil {
			continue
		}
		m := x.match().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found := Failure{Name: group(x.match(), m, "name"), Text: group(x.match(), m, "text"),
			Place: place(group(x.match(), m, "file"), group(x.match(), m, "line")), isVague: x.vague}
		switch {
		case x.has == "● " && found.Name == noTest:
			continue
		case x.has == "not ok " && tapDirective().MatchString(found.Name):
			f.open = nil // it is to do, or was left out
			return true
		}
		if x.below {
			if f.file == "" {
				continue
			}
			found.Place = f.file + ":" + group(x.match(), m, "line")
		}
		f.note(found, x)
		if x.lastWords {
			for _, line := range f.before {
				f.add(line)
			}
		}
		return true
	}
	return false
}

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
		key = f.names.jestFile + f.names.cargo.target + key
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
	if x.block {
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
	if f.lines++; f.lines > maxBlock || f.format.ends != nil && f.format.ends().MatchString(line) {
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

// group returns a named group of a match, "" where the expression has none of that name.
func group(re *regexp.Regexp, m []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 {
		return strings.TrimSpace(m[i])
	}
	return ""
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
