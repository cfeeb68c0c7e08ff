package failures

import (
	"bytes"

	"muster/internal/lazyregexp"
)

// printed is a report in the output of a check, of which lines were printed. Its zero value has none.
type printed struct {
	text   []byte
	isSure bool // a suite has begun; before that it may be other XML
	depth  int  // how many suites are open
}

var (
	suiteBegin = lazyregexp.New(`<testsuites?(?:[\s/>]|$)`)
	suiteEnd   = lazyregexp.New(`</testsuites?\s*>|<testsuites?(?:\s[^>]*)?/>`)
)

// A report ends with the line in which as many suites have ended as have begun. Where a text in it has such words, it
// ends later, perhaps with the output: the parser then finds the true end, and the rest is lost for the console alone.

// maxProlog is how many bytes may come before the first suite.
const maxProlog = 4 << 10

// isReportLine reports whether a line begins a report, or may begin one.
func isReportLine(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t")
	return bytes.HasPrefix(trimmed, []byte("<?xml")) || bytes.HasPrefix(trimmed, []byte("<testsuite"))
}

// reportLine takes a line, and reports whether it belongs to a report. What is in a report is no line of the console:
// the text of a failure there has all that its test has printed.
func (f *Finder) reportLine(raw []byte) bool {
	p := &f.printed
	if len(p.text) == 0 && !isReportLine(raw) {
		return false
	}
	p.text = append(append(p.text, raw[:min(len(raw), MaxReport+1-min(len(p.text), MaxReport))]...), '\n')
	begun := len(suiteBegin().FindAllIndex(raw, -1))
	p.isSure = p.isSure || begun > 0
	p.depth += begun - len(suiteEnd().FindAllIndex(raw, -1))
	trimmed := bytes.TrimSpace(raw)
	isProlog := len(trimmed) == 0 || bytes.HasPrefix(trimmed, []byte("<?")) || bytes.HasPrefix(trimmed, []byte("<!--"))
	if p.isSure && p.depth <= 0 || !p.isSure && (!isProlog || len(p.text) > maxProlog) {
		f.endReport()
	}
	return true
}

// endReport reads the report that was printed, or takes its lines as those of the console if it is none.
func (f *Finder) endReport() {
	p := f.printed
	f.printed = printed{}
	switch {
	case p.isSure:
		f.report.isPartial = f.report.isPartial || len(p.text) > MaxReport
		f.report.read(p.text)
	case len(p.text) > 0:
		for line := range bytes.Lines(p.text) {
			f.consoleLine(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
}
