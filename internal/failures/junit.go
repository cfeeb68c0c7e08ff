package failures

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/safetext"
)

// Many runners that print little for a program write a report in the XML of JUnit: suites, perhaps in one another, have
// the test cases, and a case that has failed has a failure or an error in it. Nobody owns the format, so no more is
// expected of it than that. A case that Surefire has run again has flakyFailure or rerunFailure as well; it has failed
// only if it has a failure too.
//
// A report names a test by its class and what it is called there, as Class::name, and a test of Go as its console does.
// A name that comes again in one file is another test, such as one of another row of data, and has a number.

// MaxReport is how many bytes of a report are read.
const MaxReport = 16 << 20

// maxName is how many bytes of a test's name are kept.
const maxName = 500

// report is what all reports of a check say together. Its zero value says nothing.
//
// Invariant: where isPartial is false, names has all tests that have failed in the reports that were read.
type report struct {
	names     map[string]bool
	all       []Failure           // some of them, for people
	words     map[string][]string // of the names, by the last word of each
	failed    int                 // tests that have failed, also under the same name
	isPartial bool                // a report was cut off, or counts more failures than it has
}

// suite is one that the reader is in.
type suite struct {
	name, file string
	expected   int // how many failures it says that it has
	failed     int // how many were read
}

// testCase is one that the reader is in, or a suite that has failed without any.
type testCase struct {
	class, name, place, message string
	body                        []byte
	isSkipped                   bool // or to do: node runs such a test and tells its failure too
}

// reader reads one report. It keeps of the elements around it only their names, and of a case only what is told of it,
// so that a report of any depth and any length of text takes no more memory than its own bytes.
type reader struct {
	*report
	d       *xml.Decoder
	path    []string // the elements that are open
	suites  []suite
	test    *testCase
	isRed   bool // the case has failed
	isInner bool // the text belongs to a failure
	times   map[string]int
}

// Report takes a report that a check has written, and reports whether it is one. It is called before Failures.
func (f *Finder) Report(data []byte) bool {
	return bytes.Contains(data[:min(len(data), maxRead)], []byte("<testsuite")) && f.report.read(data)
}

// Incomplete notes that there are reports that could not be read.
func (f *Finder) Incomplete() { f.report.isPartial = true }

// illegal matches what no XML may have and reports of many programs do: references to control characters.
var illegal = lazyregexp.New(`&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]));`)

// legal makes the bytes such that a parser takes them, whatever they are: of an unknown encoding the letters of ASCII
// stay.
func legal(data []byte) []byte {
	data = illegal().ReplaceAll(bytes.ToValidUTF8(data, []byte("?")), []byte("?"))
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, data)
}

// read reads a report. The parser expands no entities but those of XML itself, and nothing here is recursive.
func (x *report) read(data []byte) (isReport bool) {
	r := &reader{report: x, d: xml.NewDecoder(bytes.NewReader(legal(data[:min(len(data), MaxReport)]))),
		times: map[string]int{}}
	r.d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := r.d.Token()
		if err != nil {
			if len(r.path) == 0 {
				return isReport
			}
			// The end is missing. What came before it counts.
			r.isPartial = true
			if r.test != nil && r.isRed && !r.test.isSkipped {
				r.add()
			}
			return true
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(r.path) == 0 && !strings.HasPrefix(t.Name.Local, "testsuite") {
				return isReport
			}
			isReport = true
			r.begin(t)
			r.path = append(r.path, t.Name.Local)
		case xml.CharData:
			if r.isInner && len(r.test.body) < maxRead {
				r.test.body = append(r.test.body, t[:min(len(t), maxRead)]...)
			}
		case xml.EndElement:
			r.path = r.path[:len(r.path)-1]
			r.end(t.Name.Local)
		}
	}
}

// A suite that has failed before any of its cases began, as in the set-up of a class, has a failure of its own. It is
// told as a test with the name of the suite: what it would have run is not known, and it is the same on the next tree.

// attribute returns an attribute of an element.
func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// begin takes the begin of an element.
func (r *reader) begin(t xml.StartElement) {
	parent := ""
	if len(r.path) > 0 {
		parent = r.path[len(r.path)-1]
	}
	switch t.Name.Local {
	case "testsuites", "testsuite":
		s := suite{name: attribute(t, "name"), file: cmp.Or(attribute(t, "file"), attribute(t, "filepath"))}
		for _, name := range []string{"failures", "errors"} {
			n, _ := strconv.Atoi(attribute(t, name)) // a count that is none says nothing
			s.expected += max(0, n)
		}
		r.suites = append(r.suites, s)
	case "testcase":
		r.isRed = false
		r.test = &testCase{class: attribute(t, "classname"), name: attribute(t, "name"), place: place(
			attribute(t, "file"), cmp.Or(attribute(t, "line"), attribute(t, "lineno")))}
	case "skipped":
		if parent == "testcase" && r.test != nil {
			r.test.isSkipped = true
		}
	case "failure", "error":
		// What is deeper, such as in the output of the test, is text that looks like one.
		if strings.HasPrefix(parent, "testsuite") {
			r.test = &testCase{} // nothing in it has run
		} else if parent != "testcase" || r.test == nil {
			return
		}
		r.isRed, r.isInner = true, true
		r.test.message = cmp.Or(r.test.message, attribute(t, "message"))
	}
}

// end takes the end of an element.
func (r *reader) end(name string) {
	switch name {
	case "testsuites", "testsuite":
		last := len(r.suites) - 1
		s := r.suites[last]
		// Some count the suites that they contain and some do not, so only fewer than counted is too few.
		r.isPartial = r.isPartial || s.failed < s.expected
		if r.suites = r.suites[:last]; last > 0 {
			r.suites[last-1].failed += s.failed
		}
	case "testcase":
		if r.test != nil && r.isRed && !r.test.isSkipped {
			r.add()
		}
		r.test, r.isInner = nil, false
	case "failure", "error":
		r.isInner = false
		if r.test != nil && r.path[len(r.path)-1] != "testcase" && r.isRed {
			r.add()
			r.test, r.isRed = nil, false
		}
	}
}

// goTest matches the name of a test of Go.
var goTest = lazyregexp.New(`^(?:Test|Example|Fuzz|Benchmark)(?:$|[^a-z(])`)

// name returns the name of the case: by its class, or by its suites where that says nothing.
func (r *reader) name() string {
	class, name := safetext.OneLine(r.test.class), safetext.OneLine(r.test.name)
	if class == "" || class == "test" { // node says the latter of each
		var all []string
		for _, s := range r.suites {
			if s.name != "" && s.name != "pytest" { // whose errors at the import of a file have no class
				all = append(all, safetext.OneLine(s.name))
			}
		}
		class = strings.Join(all, " > ")
	}
	switch {
	case class == "" || name == "" || class == name: // the last are as jest's reporter writes them
		name = cmp.Or(name, class, "a test without a name")
	case goTest().MatchString(name) && !strings.Contains(class, " "):
		name = class + "." + name
	default:
		name = class + "::" + name
	}
	return safetext.Cut(name, maxName)
}

// add adds the case, which has failed.
func (r *reader) add() {
	if len(r.suites) > 0 {
		r.suites[len(r.suites)-1].failed++
	}
	r.failed++
	name := r.name()
	// The number depends on the order in the file alone. Two files with the same tests are two copies, or two runs of
	// them, so each begins to count anew.
	key := name
	if r.times[name]++; r.times[name] > 1 {
		key += fmt.Sprintf(" (%d)", r.times[name])
	}
	if r.names[key] {
		return // of another file with the same tests
	}
	if r.names == nil {
		r.names, r.words = map[string]bool{}, map[string][]string{}
	}
	r.names[key] = true
	if key != name {
		return
	}
	all, last := words(name)
	r.words[last] = append(r.words[last], all)
	if len(r.all) < maxFailures {
		r.all = append(r.all, r.failure(name))
	}
}

// failure returns the case for people: where it is, and the first line of what it says.
func (r *reader) failure(name string) Failure {
	x := Failure{Name: safetext.Cut(name, maxLine), Place: safetext.Cut(r.test.place, maxLine)}
	if x.Place == "" && len(r.suites) > 0 {
		x.Place = safetext.Cut(r.suites[len(r.suites)-1].file, maxLine)
	}
	n := 0
	for line := range strings.Lines(r.test.message + "\n" + string(r.test.body)) {
		if n++; n > 2*maxBlock || strings.Contains(x.Place, ":") && x.Text != "" {
			break
		}
		line = safetext.Cut(strings.TrimRight(safetext.Clean(line), " \t\r\n"), maxLine)
		if trimmed := strings.TrimSpace(line); x.Text == "" && !isNoise(trimmed) {
			x.add(trimmed)
		}
		x.findPlace(line)
	}
	return x
}

// A test that the console names too has not the same name there: t/test_a.py::test_x is t.test_a::test_x in a report,
// and may lack its class or its file. So two names mean one test if the words of one end with those of the other.

var (
	wordPattern = lazyregexp.New(`[\pL\pN_]+`)
	// extension matches that of a source file, which only some names have.
	extension = lazyregexp.New(`\.(?:py|[cm]?[jt]sx?|rb|rs|php|java|kt|cs|bats)\b`)
)

// words returns the words of a name with a blank before each, and the last one of them.
func words(name string) (all, last string) {
	found := wordPattern().FindAllString(extension().ReplaceAllString(name, ""), -1)
	if len(found) == 0 {
		return " " + name, name
	}
	return " " + strings.Join(found, " "), found[len(found)-1]
}

// has reports whether a test has failed in a report, perhaps under another name.
func (x *report) has(name string) bool {
	all, last := words(name)
	return slices.ContainsFunc(x.words[last], func(w string) bool {
		return strings.HasSuffix(w, all) || strings.HasSuffix(all, w)
	})
}

// People read a failure once, under the name that they see in the console if it has one. The console may know no place,
// and the report no more than the name.

// mergeReports adds what the reports say to what the console says of the same tests, and the tests that only they name.
func (f *Finder) mergeReports() {
	for _, x := range f.report.all {
		all, _ := words(x.Name)
		at := slices.IndexFunc(f.all, func(old Failure) bool {
			w, _ := words(old.Name)
			return old.Name != "" && (strings.HasSuffix(w, all) || strings.HasSuffix(all, w))
		})
		switch {
		case at < 0 && len(f.all) < maxFailures:
			f.all = append(f.all, x)
		case at >= 0:
			old := &f.all[at]
			old.Place = cmp.Or(old.Place, x.Place)
			old.Text = cmp.Or(old.Text, x.Text)
		}
	}
}
