package session

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The shapes of what stands in a call, by agent and version.
var (
	inCode      = regexp.MustCompile("`([^`]+)`")
	fenceLine   = regexp.MustCompile("^(```+)([^`]*)$")
	inputLine   = regexp.MustCompile("^- ([A-Za-z_]+):(?: `(.*)`)?$")
	patchLine   = regexp.MustCompile("^\\*\\*(Add|Update|Modify|Delete): `(.+)`\\*\\*$")
	namedCode   = regexp.MustCompile("\\b(path|pattern|include) `([^`]+)`")
	grepSummary = regexp.MustCompile(`^Grep for "(.*?)"(?: in "(.*?)")? • `)
	globSummary = regexp.MustCompile(`^Searched codebase "(.*?)" • `)
	doneLine    = regexp.MustCompile(`(?:The file (.+?) has been updated|` +
		`File created successfully at: (.+?)(?: \(file state.*)?$|` +
		`Successfully (?:modified|created and wrote to new|overwrote) file: (.+?)(?: \(\d+ replacements\))?\.$)`)
	patchDone = regexp.MustCompile(`(?m)^Success\. Updated the following files:|^Exit code: 0$`)
	exitCode  = regexp.MustCompile(`(?m)^(?:Exit code:?|Process exited with code|Exit Code:) (\d+)$`)
	original  = regexp.MustCompile(`(?m)^Original token count: (\d+)$`)
)

// refusal is how Claude Code tells the model that the user said no.
const refusal = "The user doesn't want to "

// read reads the body of a call.
func read(tool, body string) *Call {
	c := &Call{Tool: tool, Does: actions[tool], Args: map[string]string{}}
	body = strings.TrimSuffix(strings.TrimSpace(body), "</details>")
	summary, rest := "", body
	if _, after, ok := strings.Cut(body, "<summary>"); ok {
		summary, rest, _ = strings.Cut(after, "</summary>")
	}
	tail := summary
	if _, after, ok := strings.Cut(summary, "**"+tool+"**"); ok {
		tail = after
	}
	c.summary(strings.TrimSpace(tail))
	r := bodyReader{call: c, lines: strings.Split(strings.Trim(rest, "\n"), "\n")}
	for r.at < len(r.lines) {
		r.next()
	}
	c.finish()
	return c
}

// summary reads what stands behind the name of the tool.
func (c *Call) summary(s string) {
	s = strings.TrimSpace(strings.TrimPrefix(s, "•"))
	if path, ok := strings.CutPrefix(s, "Read file: "); ok {
		c.Paths = append(c.Paths, path)
		return
	}
	if path, ok := strings.CutPrefix(s, "Edit file: "); ok {
		c.Paths = append(c.Paths, path)
		return
	}
	if command, ok := strings.CutPrefix(s, "Run command: "); ok {
		c.Command = command
		return
	}
	if m := grepSummary.FindStringSubmatch(s); m != nil {
		c.set("pattern", m[1])
		c.set("path", m[2])
		return
	}
	if m := globSummary.FindStringSubmatch(s); m != nil {
		c.set("pattern", m[1])
		return
	}
	if m := inCode.FindStringSubmatch(s); m != nil {
		switch c.Does {
		case Read:
			c.Paths = append(c.Paths, m[1])
		case Search:
			c.set("pattern", m[1])
		case Shell:
			c.Command = strings.Trim(s, "`")
		}
	}
}

// set notes an argument that is not empty.
func (c *Call) set(name, value string) {
	if value != "" && value != "undefined" {
		c.Args[name] = value
	}
}

// bodyReader reads the lines of a body.
type bodyReader struct {
	call  *Call
	lines []string
	at    int
	patch bool // the last line was the file of a patch
}

// fence returns the content of the fence that begins in the current line. A last one reaches to the last line that can
// end it: some results have such lines in them.
func (r *bodyReader) fence(last bool) string {
	ticks := fenceLine.FindStringSubmatch(r.lines[r.at])[1]
	begin, end := r.at+1, -1
	for i := begin; i < len(r.lines); i++ {
		if strings.TrimRight(r.lines[i], " ") == ticks {
			if end = i; !last {
				break
			}
		}
	}
	if end < 0 {
		end = len(r.lines)
	}
	r.at = min(end+1, len(r.lines))
	return strings.Join(r.lines[begin:end], "\n")
}

// next reads one line, or a fence.
func (r *bodyReader) next() {
	c, line := r.call, strings.TrimRight(r.lines[r.at], " ")
	if m := fenceLine.FindStringSubmatch(line); m != nil {
		r.fenced(m[2])
		return
	}
	r.at++
	switch text, ok := "", false; {
	case line == "Parameters:" || line == "Additional data:": // the second are of the editor, and have the path
		if r.skipToFence() {
			c.parameters(r.fence(false))
		}
		if line != "Parameters:" {
			c.Names = nil
		}
	case strings.HasPrefix(line, "Result:") || line == "**Result:**" || line == "**Error:**":
		c.Failed = c.Failed || line == "**Error:**"
		_, text, _ = strings.Cut(line, "Result:")
		c.result(strings.Trim(text, "* "))
		if c.Result == "" && r.skipToFence() {
			c.result(r.fence(true))
		}
	case line == "**Apply failed**" || strings.HasPrefix(line, "Status: **error"):
		c.Failed = true
	case strings.HasPrefix(line, "Status: **cancel") || strings.HasPrefix(line, "Status: **reject"):
		c.Refused = true
	case inputLine.MatchString(line):
		r.input(inputLine.FindStringSubmatch(line))
	case patchLine.MatchString(line):
		m := patchLine.FindStringSubmatch(line)
		c.Paths = append(c.Paths, m[2])
		c.Args["input"] += "*** " + m[1] + " File: " + m[2] + "\n"
		r.patch = m[1] != "Delete"
	default:
		if text, ok = strings.CutPrefix(line, "Path: "); ok {
			c.Paths = append(c.Paths, strings.Trim(text, "`"))
			return
		}
		if text, ok = strings.CutPrefix(line, "Read file: "); ok {
			c.Paths = append(c.Paths, text)
			return
		}
		r.plain(line)
	}
}

// plain reads a line that no format names.
func (r *bodyReader) plain(line string) {
	c := r.call
	switch c.Does {
	case Shell:
		if len(line) > 1 && line[0] == '`' && line[len(line)-1] == '`' && c.Command == "" {
			c.Command = strings.Trim(line, "`")
		}
	case Read:
		if m := inCode.FindStringSubmatch(line); m != nil && len(c.Paths) == 0 && strings.HasPrefix(line, " `") {
			c.Paths = append(c.Paths, m[1])
		}
	case Edit, Write:
		if m := inCode.FindStringSubmatch(line); m != nil && len(c.Paths) == 0 && strings.HasPrefix(line, " `") {
			c.Paths = append(c.Paths, m[1])
		}
		if m := doneLine.FindStringSubmatch(line); m != nil {
			c.result(line)
		}
	case Search:
		found := namedCode.FindAllStringSubmatch(line, -1)
		if found != nil && !c.HasResult && strings.HasPrefix(line, " ") {
			for _, m := range found {
				c.set(m[1], m[2])
			}
		} else if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "Output mode:") {
			c.result(strings.Trim(c.Result+"\n"+line, "\n"))
		}
	}
}

// fenced reads a fence whose language is given.
func (r *bodyReader) fenced(language string) {
	c := r.call
	switch {
	case r.patch:
		r.patch = false
		c.Args["input"] += r.fence(false) + "\n"
	case language == "diff":
		c.Args["diff"] += r.fence(false) + "\n"
	case c.Does == Shell && language == "bash":
		if text := r.fence(false); c.Command == "" || strings.HasPrefix(text, c.Command[:1]) {
			c.Command = text
		}
	case c.Does == Write && c.Args["content"] == "" && !c.HasResult && (language != "text" || r.hasLater("```text")):
		c.set("content", r.fence(false))
	case c.Does == Edit && language != "text" && language != "":
		c.set("shown", r.fence(false))
	default:
		c.result(r.fence(true))
	}
}

// hasLater reports whether a later line is the given one.
func (r *bodyReader) hasLater(line string) bool { return slices.Contains(r.lines[r.at+1:], line) }

// skipToFence goes to the next fence if only empty lines are before it.
func (r *bodyReader) skipToFence() bool {
	for ; r.at < len(r.lines); r.at++ {
		if fenceLine.MatchString(r.lines[r.at]) {
			return true
		}
		if strings.TrimSpace(r.lines[r.at]) != "" {
			return false
		}
	}
	return false
}

// input reads an argument of a list: its value is in the line, or in a fence below it.
func (r *bodyReader) input(m []string) {
	value := m[2]
	if value == "" && r.skipToFence() {
		value = r.fence(false)
	}
	r.call.argument(m[1], value)
}

// pathNames are the arguments that name a file.
var pathNames = []string{"file_path", "filePath", "path", "target_file", "relativeWorkspacePath", "targetFile",
	"absolute_path", "notebook_path", "file"}

// argument notes an argument by its own name.
func (c *Call) argument(name, value string) {
	c.set(name, value)
	c.Names = append(c.Names, name)
	switch {
	case slices.Contains(pathNames, name) && c.Does != Search && value != "":
		c.Paths = append(c.Paths, value)
	case (name == "command" || name == "cmd") && c.Does == Shell:
		c.Command = value
	}
}

// parameters reads arguments that are JSON.
func (c *Call) parameters(text string) {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		raw := all[name]
		value := string(raw)
		var s string
		if json.Unmarshal(raw, &s) == nil {
			value = s
		}
		var line struct{ Original string }
		if name == "commandLine" && json.Unmarshal(raw, &line) == nil && line.Original != "" {
			c.Command = line.Original
			c.Names = append(c.Names, name)
			continue
		}
		c.argument(name, value)
	}
}

// result notes the result.
func (c *Call) result(text string) {
	if text != "" {
		c.Result, c.HasResult = text, true
	}
}

// tellOutcome are the tools whose results say in known words that an edit was made.
var tellOutcome = []string{"Edit", "MultiEdit", "Write", "apply_patch", "replace", "write_file"}

// finish sets what follows from the parts that were read.
func (c *Call) finish() {
	if strings.HasPrefix(c.Result, refusal) {
		c.Refused = true
		return
	}
	if strings.HasPrefix(strings.TrimSpace(c.Result), "<tool_use_error>") {
		c.Failed = true
		return
	}
	switch c.Does {
	case Edit, Write:
		if len(c.Paths) == 0 {
			c.Paths = patchPaths(c.Args["input"])
		}
	case Shell:
		if m := exitCode.FindStringSubmatch(c.Result); m != nil {
			c.Failed = m[1] != "0"
		}
	}
	if (c.Does == Edit || c.Does == Write) && c.HasResult {
		m := doneLine.FindStringSubmatch(strings.SplitN(c.Result, "\n", 2)[0])
		switch {
		case m != nil && len(c.Paths) == 0:
			c.Paths = append(c.Paths, m[1]+m[2]+m[3])
		case m == nil && slices.Contains(tellOutcome, c.Tool) && !patchDone.MatchString(c.Result) &&
			!strings.HasPrefix(c.Result, `{`): // of an editor: what it has done
			c.Failed = true
		}
	}
}

// patchPaths returns the files of a patch.
func patchPaths(patch string) (paths []string) {
	for line := range strings.Lines(patch) {
		for _, begin := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), begin); ok {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Done reports whether the export shows that a call was done. Editors export the diff of an edit that was made.
func (c *Call) Done() bool {
	if c.Failed || c.Refused {
		return false
	}
	if c.Does == Edit || c.Does == Write {
		return c.HasResult && slices.Contains(tellOutcome, c.Tool) || strings.Contains(c.Args["diff"], "@@")
	}
	return c.HasResult
}

// Cut returns the number of tokens that the result had for the model, if the export has only its beginning.
func (c *Call) Cut() (tokens string, ok bool) {
	if !strings.HasSuffix(c.Result, "... (truncated)") {
		return "", false
	}
	m := original.FindStringSubmatch(c.Result)
	if m == nil {
		return "", false
	}
	return m[1], true
}
