package permissions

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/text"
)

// claudeFiles are the files of a repository that have rules for Claude Code.
var claudeFiles = []string{".claude/settings.json", ".claude/settings.local.json"}

// maxClaudeFile is how large such a file may be, in bytes.
const maxClaudeFile = 256 << 10

// FromClaude returns the rules to deny and to ask that the repository at root has for Claude Code. Those to allow never
// count. isTool reports whether muster has a tool with a name. notes has a line for each file of which something does
// not hold. A file that cannot be read has no rules: package hooks reads it too, and says so.
func FromClaude(root string, isTool func(name string) bool) (rules []Rule, notes []string) {
	for _, file := range claudeFiles {
		data, err := durable.ReadBelow(root, filepath.Join(root, filepath.FromSlash(file)), maxClaudeFile)
		var settings struct{ Permissions json.RawMessage }
		if err != nil || json.Unmarshal(muster.TrimBOM(data), &settings) != nil || settings.Permissions == nil {
			continue
		}
		found, left := claudeRules(file, settings.Permissions, isTool)
		if rules = append(rules, found...); len(left) > 0 {
			const most = 5
			notes = append(notes, text.OneLine(fmt.Sprintf("permissions of %s that do not hold here: %s", file,
				text.List(left, most))))
		}
	}
	return rules, notes
}

// claudeRules returns the rules of a section of permissions, and what in it does not hold.
func claudeRules(file string, section json.RawMessage, isTool func(string) bool) (rules []Rule, left []string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(section, &fields) != nil {
		return nil, []string{"all, because they are no object"}
	}
	for _, action := range []Action{Deny, Ask} {
		data := fields[action.String()]
		var list []json.RawMessage
		var one string
		if data != nil && json.Unmarshal(data, &list) != nil {
			if json.Unmarshal(data, &one) != nil {
				left = append(left, action.String()+", which is no list")
				continue
			}
			list = []json.RawMessage{data}
		}
		for _, item := range list {
			var words string
			err := json.Unmarshal(item, &words)
			var r Rule
			if err == nil {
				r, err = claudeRule(action, words, file, isTool)
			}
			if err != nil {
				left = append(left, fmt.Sprintf("%s %s (%s)", action, item, muster.PlainText(err)))
				continue
			}
			rules = append(rules, r)
		}
	}
	var mode string
	if json.Unmarshal(fields["defaultMode"], &mode) == nil && (mode == "plan" || mode == "dontAsk") {
		left = append(left, "defaultMode "+mode)
	}
	return rules, left
}

// claudeRule returns a rule of Claude Code's.
func claudeRule(action Action, words, file string, isTool func(string) bool) (Rule, error) {
	name, about, hasAbout := strings.Cut(strings.TrimSuffix(strings.TrimSpace(words), ")"), "(")
	ours, isOther := map[string]string{"task": "subagent", "agent": "subagent", "todowrite": "todo",
		"skill": "load_skill", "bashoutput": "check_background", "killshell": "stop_background",
		"killbash": "stop_background", "taskcreate": "task_create", "ls": "glob",
		"notebookread": "read_file"}[strings.ToLower(name)]
	if isOther {
		words = ours
		if hasAbout && ours != "read_file" {
			return Rule{}, muster.Errorf(muster.Invalid, "muster can only have a rule for the whole tool")
		}
		if hasAbout {
			words += "(" + about + ")"
		}
	}
	r, err := ParseRule(action, words, file)
	if err != nil {
		return r, err
	}
	isKnown := slices.ContainsFunc(r.tools, func(tool string) bool {
		return isTool(tool) || strings.ContainsAny(tool, "*?[") || strings.HasPrefix(tool, "mcp__")
	})
	if !isKnown {
		return r, muster.Errorf(muster.Invalid, "muster has no such tool")
	}
	return r, nil
}
