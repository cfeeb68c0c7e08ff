package replay

import (
	"path"
	"regexp"
	"strings"

	"muster/bench/habits/session"
	"muster/llm"
)

// judge says what became of a call. before is what its file had.
func (p *player) judge(c *session.Call, before string, r llm.Result) Verdict {
	name, isHere := "", true
	if len(c.Paths) > 0 {
		name, isHere = p.places.in(c.Paths[0])
	}
	switch {
	case r.IsError && c.Failed:
		return AsBefore
	case r.IsError && !isHere:
		return Refused
	case c.Does == session.Write: // it needs nothing of the old file
		p.stale[name] = false
	case p.stale[name]:
		return Drifted
	case r.IsError && !c.Failed && p.isMissing(c):
		return Drifted
	}
	switch c.Does {
	case session.Read:
		return judgeRead(c, before, r)
	case session.Write:
		return p.judgeWrite(c, r)
	case session.Edit:
		return p.judgeEdit(c, before, r)
	}
	return p.judgeSearch(c, r)
}

// isMissing reports whether a file or directory that a call names is one of the repository, and is not there: the
// session had made it, or the last commit does not have it.
func (p *player) isMissing(c *session.Call) bool {
	named := c.Paths
	if at := c.Args["path"]; c.Does == session.Search && at != "" {
		named = []string{at}
	}
	if c.Does == session.Write || len(named) == 0 {
		return false
	}
	name, ok := p.places.in(named[0])
	if !ok {
		return false
	}
	_, err := p.root.Stat(name)
	return err != nil
}

// judgeRead compares the lines of a read with those in the record.
func judgeRead(c *session.Call, before string, r llm.Result) Verdict {
	recorded, _ := lines(c.Result)
	if len(recorded) == 0 {
		if r.IsError {
			return Refused
		}
		return Done
	}
	file := strings.Split(before, "\n")
	for n, text := range recorded {
		if n > len(file) || strings.TrimSuffix(file[n-1], "\r") != text {
			return Drifted
		}
	}
	if r.IsError {
		return Refused
	}
	got, _ := lines(r.Text())
	for n, text := range recorded {
		if _, ok := got[n]; !ok && strings.Contains(r.Text(), "go on with offset") ||
			strings.Contains(got[n], " bytes more in this line)") {
			return Cut
		}
		if got[n] != text && !(n == len(file) && text == "") { // what follows the last line end is no line for muster
			return Other
		}
	}
	return Same
}

// judgeWrite compares the file with what was written.
func (p *player) judgeWrite(c *session.Call, r llm.Result) Verdict {
	switch got := p.content(c); {
	case r.IsError:
		return Refused
	case strings.TrimSuffix(got, "\n") == strings.TrimSuffix(c.Args["content"], "\n"):
		return Same
	}
	return Other
}

// judgeEdit compares the file with what the edit meant: the only place of the old text, or the lines of the diff.
func (p *player) judgeEdit(c *session.Call, before string, r llm.Result) Verdict {
	after := p.content(c)
	chunks := chunksOf(c.Args["diff"])
	old, now := c.Args["oldString"], c.Args["newString"]
	want, known := "", false
	switch {
	case len(chunks) > 0:
		want, known = apply(before, chunks)
	case old != "" && strings.Count(before, old) > 0:
		want, known = strings.Replace(before, old, now, 1), strings.Count(before, old) == 1
		if !known && r.IsError {
			return Refused
		}
	case c.Args["input"] != "":
		want, known = patched(before, c.Args["input"], len(c.Paths))
	}
	switch {
	case !known && !r.IsError:
		return Done
	case !known:
		return Drifted
	case r.IsError:
		return Refused
	case withoutEnds(after) == withoutEnds(want):
		return Same
	}
	return Other
}

// withoutEnds returns a text without blanks at the ends of its lines, which exports do not keep.
func withoutEnds(text string) string {
	return strings.TrimRight(regexp.MustCompile(`[ \t\r]+\n`).ReplaceAllString(text, "\n"), "\n")
}

// patched applies a patch of one file whose hunks have one place each.
func patched(before, patch string, files int) (after string, ok bool) {
	if files != 1 || strings.Contains(patch, "*** Add File") || strings.Contains(patch, "*** Delete File") {
		return "", false
	}
	after = before
	var old, now strings.Builder
	end := func() bool {
		defer func() { old.Reset(); now.Reset() }()
		if old.Len() == 0 && now.Len() == 0 {
			return true
		}
		if old.Len() == 0 || strings.Count(after, old.String()) != 1 {
			return false
		}
		after = strings.Replace(after, old.String(), now.String(), 1)
		return true
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(patch, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "***") || strings.HasPrefix(line, "@@"):
			if !end() {
				return "", false
			}
		case strings.HasPrefix(line, "-"):
			old.WriteString(line[1:] + "\n")
		case strings.HasPrefix(line, "+"):
			now.WriteString(line[1:] + "\n")
		default:
			old.WriteString(strings.TrimPrefix(line, " ") + "\n")
			now.WriteString(strings.TrimPrefix(line, " ") + "\n")
		}
	}
	return after, end()
}

// judgeSearch compares the files that were found. The export may have fewer: options that it does not have may have
// left some out. A file that the commit does not have, or that has no match there, says nothing.
func (p *player) judgeSearch(c *session.Call, r llm.Result) Verdict {
	if r.IsError {
		return Refused
	}
	isGlob := !strings.EqualFold(c.Tool, "grep")
	if c.Failed || !strings.HasPrefix(c.Result, "Found ") && (!isGlob || c.Tool != "Glob") {
		return Done
	}
	found := map[string]bool{}
	for line := range strings.SplitSeq(r.Text(), "\n") {
		if line = strings.TrimPrefix(line, p.root.Name()+"/"); line != "" {
			found[path.Clean(line)] = true
		}
	}
	if strings.Contains(r.Text(), "\n[") { // not all are shown
		return Done
	}
	pattern, err := regexp.Compile("(?m)" + c.Args["pattern"])
	compared := false
	for line := range strings.SplitSeq(c.Result, "\n") {
		name, ok := p.places.in(line)
		if !ok || strings.HasPrefix(line, "Found ") {
			continue
		}
		data, readErr := p.root.ReadFile(name)
		if readErr != nil || p.stale[name] || !isGlob && (err != nil || !pattern.Match(data)) {
			continue
		}
		if compared = true; !found[name] {
			return Other
		}
	}
	if !compared {
		return Done
	}
	return Same
}

// refusals are the kinds of refusals, told by the first text that fits.
var refusals = []struct {
	text *regexp.Regexp
	kind string
}{
	{regexp.MustCompile(`^(?:There is no tool|no tool|unknown tool)`), "no tool of this name"},
	{regexp.MustCompile(`outside of your working directory|leads out of`), "a path outside of the repository"},
	{regexp.MustCompile(`is git's own`), "git's own files"},
	{regexp.MustCompile(`^there is no |no such file`), "no such file"},
	{regexp.MustCompile(`RE2`), "a pattern that RE2 does not have"},
	{regexp.MustCompile(`is not a pattern`), "not a glob"},
	{regexp.MustCompile(`has changed since`), "the file has changed since it was read"},
	{regexp.MustCompile(`places|more than once|several`), "the old text has several places"},
	{regexp.MustCompile(`is not in|does not contain|not found`), "the old text is not there"},
	{regexp.MustCompile(`already has|nothing would change`), "nothing would change"},
	{regexp.MustCompile(`there is no line`), "no such line"},
	{regexp.MustCompile(`is not text`), "not text"},
	{regexp.MustCompile(`field|argument|schema|required|needs`), "arguments that the tool does not take"},
}

// Kind returns the kind of a refusal.
func Kind(said string) string {
	for _, r := range refusals {
		if r.text.MatchString(said) {
			return r.kind
		}
	}
	return "something else"
}
