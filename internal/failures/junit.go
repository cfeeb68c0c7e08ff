package failures

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// Many runners that print little for a program write a report in the XML of JUnit: suites, perhaps in one another, have
// the test cases, and a case that has failed has a failure or an error in it. The format has no specification, so no
// more is expected of it than that.

// MaxReport is how many bytes of a report are read.
const MaxReport = 16 << 20

// maxName is how many bytes of a test's name are kept.
const maxName = 500

// report is what all reports of a check say together. Its zero value says nothing.
//
// Invariant: where isPartial is false, names has all tests that have failed in the reports that were read.
type report struct {
	names     map[string]bool
	all       []Failure // some of them, for people
	failed    int       // tests that have failed, also under the same name
	isPartial bool      // a report was cut off, or counts more failures than it has
}

// suite is a suite, or the suites of a whole report.
type suite struct {
	XMLName  xml.Name
	Name     string     `xml:"name,attr"`
	File     string     `xml:"file,attr"`
	Failures string     `xml:"failures,attr"`
	Errors   string     `xml:"errors,attr"`
	Suites   []suite    `xml:"testsuite"`
	Cases    []testCase `xml:"testcase"`
}

// testCase is a test.
type testCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	File    string    `xml:"file,attr"`
	Line    string    `xml:"line,attr"`
	Skipped *struct{} `xml:"skipped"` // or to do: node runs such a test and tells its failure too
	Failure *outcome  `xml:"failure"`
	Error   *outcome  `xml:"error"`
}

// outcome is what a failure or an error says.
type outcome struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Report takes a report that a check has written, and reports whether it is one. It is called before Failures.
func (f *Finder) Report(data []byte) bool {
	if !bytes.Contains(data[:min(len(data), maxRead)], []byte("<testsuite")) {
		return false
	}
	d := xml.NewDecoder(bytes.NewReader(legal(data[:min(len(data), MaxReport)])))
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var root suite
	err := xml.NewTokenDecoder(&bounded{d: d}).Decode(&root)
	if name := root.XMLName.Local; name != "testsuites" && name != "testsuite" {
		return false
	}
	f.report.isPartial = f.report.isPartial || err != nil
	f.report.suite(root, "")
	return true
}

// bounded reads a report with no more elements, and no deeper, than a program that runs tests writes.
type bounded struct {
	d            *xml.Decoder
	depth, begun int // how many elements are around, and how many have begun
}

// errUnbounded says that a report has more than that.
var errUnbounded = errors.New("too many elements, or too deep")

// Token returns the next token.
func (b *bounded) Token() (xml.Token, error) {
	const deepest, most = 100, 500_000
	t, err := b.d.Token()
	switch t.(type) {
	case xml.StartElement:
		b.depth++
		b.begun++
	case xml.EndElement:
		b.depth--
	}
	if b.depth > deepest || b.begun > most {
		return nil, errUnbounded
	}
	return t, err
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

// suite takes a suite, and returns how many tests in it have failed. above are the names of the suites around it.
func (x *report) suite(s suite, above string) (failed int) {
	path := text.OneLine(s.Name)
	if path == "pytest" { // of each of its reports
		path = ""
	}
	if above != "" && path != "" {
		path = above + " > " + path
	}
	path = cmp.Or(path, above)
	for _, t := range s.Cases {
		if (t.Failure != nil || t.Error != nil) && t.Skipped == nil {
			failed++
			t.File = cmp.Or(t.File, s.File)
			x.add(t, path)
		}
	}
	for _, inner := range s.Suites {
		failed += x.suite(inner, path)
	}
	failures, _ := strconv.Atoi(s.Failures) // 0 if it is no number
	errors, _ := strconv.Atoi(s.Errors)
	// Some count the suites that they contain and some do not, so only fewer than counted are too few.
	x.isPartial = x.isPartial || failed < failures+errors
	return failed
}

// goTest matches the name of a test of Go.
var goTest = lazyregexp.New(`^(?:Test|Example|Fuzz|Benchmark)(?:$|[^a-z(])`)

// add adds a test that has failed. Its name is Class::name, with its suites in place of a class that says nothing. A
// test of Go has the name that its console has.
func (x *report) add(t testCase, suites string) {
	x.failed++
	class, name := text.OneLine(t.Class), text.OneLine(t.Name)
	if class == "" || class == "test" { // node says the latter of each
		class = suites
	}
	switch {
	case class == "" || name == "" || class == name: // the last are as jest's reporter writes them
		name = cmp.Or(name, class, "a test without a name")
	case goTest().MatchString(name) && !strings.Contains(class, " "):
		name = class + "." + name
	default:
		name = class + "::" + name
	}
	name = text.CutBytes(name, maxName)
	if x.names[name] {
		return // in another row of data, or in another file with the same tests
	}
	if x.names == nil {
		x.names = map[string]bool{}
	}
	x.names[name] = true
	if len(x.all) >= maxFailures {
		return
	}
	shown := Failure{Name: text.CutBytes(name, maxLine), Place: text.CutBytes(place(t.File, t.Line), maxLine)}
	said := cmp.Or(t.Failure, t.Error)
	lines := strings.SplitN(said.Message+"\n"+said.Text, "\n", maxBlock)
	for _, line := range lines[:min(len(lines), maxBlock-1)] {
		line = text.CutBytes(strings.TrimSpace(text.Clean(line)), maxLine)
		if shown.Text == "" && !isNoise(line) {
			shown.add(line)
		}
		shown.findPlace(line)
	}
	x.all = append(x.all, shown)
}
