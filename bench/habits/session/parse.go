package session

import (
	"html"
	"regexp"
	"strings"
	"time"
)

// The lines that give an export its structure. They begin a line.
var (
	headLine    = regexp.MustCompile(`^_\*\*(User|Agent|Assistant)( - sidechain)?( \(.*\))?\*\*_$`)
	sessionLine = regexp.MustCompile(`^<!-- (.+?) Session (\S+) \((.*)\) -->$`)
	toolLine    = regexp.MustCompile(`^<tool-use data-tool-type="([^"]*)" data-tool-name="([^"]*)">`)
	looseTool   = regexp.MustCompile(`^Tool use: \*\*([A-Za-z_0-9]+)\*\*$`)
	timeText    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)`)
)

// The ends of the parts that have one.
const (
	toolEnd    = "</tool-use>"
	thoughtEnd = "</details></think>"
)

// thoughtBegin begins a thought of the agent.
const thoughtBegin = "<think>"

// Parse reads an export. It takes any text: one that is no export is a session without calls.
func Parse(text string) Session {
	p := parser{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	p.session.Agent = "not named"
	for p.at < len(p.lines) {
		p.next()
	}
	p.flush()
	return p.session
}

// parser reads the lines of an export.
type parser struct {
	session Session
	lines   []string
	at      int
	head    Event // what the events below the current heading have in common
	words   []string
}

// next reads one line, or all lines of a part that has an end.
func (p *parser) next() {
	line := strings.TrimRight(p.lines[p.at], " \t")
	if m := headLine.FindStringSubmatch(line); m != nil {
		p.flush()
		p.head = Event{Kind: Words, Side: m[2] != "", Message: p.head.Message + 1, Time: timeIn(m[3])}
		if m[1] == "User" {
			p.head.Kind = Prompt
		}
		p.at++
		return
	}
	if m := sessionLine.FindStringSubmatch(line); m != nil && p.session.ID == "" {
		p.session.Agent, p.session.ID, p.session.Start = m[1], m[2], timeIn(m[3])
		p.at++
		return
	}
	if m := toolLine.FindStringSubmatch(line); m != nil {
		p.flush()
		p.tool(m[2])
		return
	}
	if m := looseTool.FindStringSubmatch(line); m != nil {
		p.flush()
		p.loose(m[1])
		return
	}
	if strings.HasPrefix(line, thoughtBegin) {
		p.flush()
		p.thought()
		return
	}
	p.words = append(p.words, line)
	p.at++
}

// flush adds the words that were read.
func (p *parser) flush() {
	text := strings.Trim(strings.Join(p.words, "\n"), "-\n ")
	p.words = nil
	if p.head.Kind != 0 && text != "" {
		p.add(p.head.Kind, text, nil)
	}
}

// add adds an event below the current heading.
func (p *parser) add(kind Kind, text string, call *Call) {
	e := p.head
	e.Kind, e.Text, e.Call = kind, text, call
	p.session.Events = append(p.session.Events, e)
}

// thought reads a thought. One without an end has one line.
func (p *parser) thought() {
	for end := p.at; end < len(p.lines) && end < p.at+5000; end++ {
		if strings.HasSuffix(p.lines[end], thoughtEnd) {
			p.add(Thought, strings.Join(p.lines[p.at:end+1], "\n"), nil)
			p.at = end + 1
			return
		}
	}
	p.at++
}

// tool reads a call. A call in which another one begins before it has ended is broken: its result may be the text of an
// export.
func (p *parser) tool(name string) {
	end := p.at + 1
	if rest := p.lines[p.at]; strings.HasSuffix(rest, toolEnd) {
		end = p.at
	}
	for ; end < len(p.lines); end++ {
		line := strings.TrimRight(p.lines[end], " \t")
		if line == toolEnd || line == "</details>"+toolEnd || end == p.at {
			break
		}
		if toolLine.MatchString(line) {
			end = len(p.lines)
		}
	}
	if end >= len(p.lines) {
		p.session.Broken++
		p.at++
		return
	}
	body := strings.Join(p.lines[p.at:end+1], "\n")
	p.at = end + 1
	_, body, _ = strings.Cut(body, ">")
	// The exports of editors have entities in all texts. Those of command lines begin their details in the first line.
	if !strings.HasPrefix(body, "<details>") {
		body = html.UnescapeString(body)
	}
	body = strings.TrimSuffix(strings.TrimSpace(body), toolEnd)
	call := read(name, body)
	if p.repeats(name, call) {
		p.session.Copies++
		return
	}
	p.add(Use, "", call)
}

// loose reads a call of an older export: it has no tags, and ends before a ruler or a heading.
func (p *parser) loose(name string) {
	begin, ticks := p.at+1, ""
	for p.at++; p.at < len(p.lines); p.at++ {
		line := strings.TrimRight(p.lines[p.at], " \t")
		if m := fenceLine.FindStringSubmatch(line); m != nil {
			switch {
			case ticks == "":
				ticks = m[1]
			case m[1] == ticks && m[2] == "":
				ticks = ""
			}
		}
		if headLine.MatchString(line) || ticks == "" && line == "---" {
			break
		}
	}
	p.add(Use, "", read(name, html.UnescapeString(strings.Join(p.lines[begin:p.at], "\n"))))
}

// repeats reports whether a call without a body is the copy of the one before it, which some exports have.
func (p *parser) repeats(name string, c *Call) bool {
	last := len(p.session.Events) - 1
	if c.HasResult || len(c.Args)+len(c.Paths) > 0 || c.Command != "" || last < 0 {
		return false
	}
	before := p.session.Events[last].Call
	return before != nil && before.Tool == name &&
		(before.HasResult || len(before.Args)+len(before.Paths) > 0 || before.Command != "")
}

// timeIn returns the first time in a text, or the zero time.
func timeIn(text string) time.Time {
	s := strings.Replace(timeText.FindString(text), "T", " ", 1)
	for _, layout := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04Z07:00",
		"2006-01-02 15:04Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
