package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapping programs run the program that follows.
var wrapping = []string{"builtin", "command", "env", "exec", "nice", "nohup", "stdbuf", "sudo", "time", "timeout"}

// printing programs write their arguments.
var printing = []string{"echo", "printf"}

// running are options of interpreters, behind which is code.
var running = []string{"-c", "-e", "-E", "-p", "-pe", "-ne", "--eval"}

// program returns the name of the program of a command, "" where it is not plain.
func (m *mapper) program(args []*syntax.Word) string {
	if args = m.unwrapped(args); len(args) == 0 {
		return ""
	}
	name := newWord(args[0]).Text
	return name[strings.LastIndexByte(name, '/')+1:]
}

// unwrapped returns a command without the programs that only run it.
func (m *mapper) unwrapped(args []*syntax.Word) []*syntax.Word {
	for len(args) > 1 && slices.Contains(wrapping, newWord(args[0]).Text) {
		isTimeout := newWord(args[0]).Text == "timeout"
		args = args[1:]
		for len(args) > 1 && (strings.HasPrefix(m.source(args[0]), "-") || strings.Contains(m.source(args[0]), "=")) {
			args = args[1:]
		}
		if isTimeout && len(args) > 1 {
			args = args[1:]
		}
	}
	return args
}

// setRoles says what the arguments of a command are to its program.
func (m *mapper) setRoles(args []*syntax.Word) {
	name := m.program(args)
	for _, w := range args {
		m.roles[w] = file
	}
	args = m.unwrapped(args)
	if len(args) < 2 {
		return
	}
	textual := func(list []*syntax.Word) {
		for _, w := range list {
			m.roles[w] = words
		}
	}
	args = args[1:]
	switch {
	case slices.Contains(printing, name):
		textual(args)
		return
	case slices.Contains(shells, name):
		for i, w := range args[:len(args)-1] {
			if option := m.source(w); strings.HasPrefix(option, "-") && strings.HasSuffix(option, "c") {
				m.roles[args[i+1]] = shellScript
				break
			}
		}
		return
	}
	switch name {
	case "python", "python3", "node", "ruby", "perl", "php", "eval", "trap", "watch", "ssh", "su":
		for i, w := range args {
			if i > 0 && slices.Contains(running, m.source(args[i-1])) || name == "eval" || name == "trap" {
				m.roles[w] = code
			}
		}
	case "grep", "egrep", "fgrep", "rg", "ag":
		textual(m.patterns(args, "ABCmgtTj", "--max-count", "--glob", "--type", "--context"))
	case "sed":
		textual(m.patterns(args, "l"))
	case "awk", "gawk", "mawk":
		textual(m.patterns(args, "Fv"))
	case "jq", "yq":
		for i, w := range args {
			if strings.HasPrefix(m.source(w), "--arg") {
				textual(args[i:min(i+3, len(args))])
			}
		}
	case "git":
		m.gitRoles(args)
	case "npm", "pnpm", "yarn", "pip", "pip3", "poetry", "go", "gh", "docker":
		if first := m.source(args[0]); slices.Contains([]string{"config", "set", "env"}, first) {
			textual(args)
		}
	}
}

// patterns returns those of the arguments of a program that looks for something that say what. valued are the options
// of one letter with a value that follows, and long those of more.
func (m *mapper) patterns(args []*syntax.Word, valued string, long ...string) (patterns []*syntax.Word) {
	var first *syntax.Word
	isGiven := false
	for i := 0; i < len(args); i++ {
		option := m.source(args[i])
		switch {
		case slices.Contains([]string{"-e", "--regexp", "--expression"}, option) && i+1 < len(args):
			isGiven = true
			i++
			patterns = append(patterns, args[i])
		case strings.HasPrefix(option, "--regexp=") || strings.HasPrefix(option, "--expression=") ||
			strings.HasPrefix(option, "-e") && !strings.HasPrefix(option, "--"):
			isGiven = true
			patterns = append(patterns, args[i])
		case slices.Contains([]string{"-f", "--file"}, option):
			isGiven = true
			i++
		case option == "--files" || strings.HasPrefix(option, "--file="):
			isGiven = true
		case slices.Contains(long, option),
			len(option) == 2 && option[0] == '-' && strings.Contains(valued, option[1:]):
			i++
		case !strings.HasPrefix(option, "-") && first == nil:
			first = args[i]
		}
	}
	if first != nil && !isGiven {
		patterns = append(patterns, first)
	}
	return patterns
}

// gitRoles says what the arguments of git are.
func (m *mapper) gitRoles(args []*syntax.Word) {
	for len(args) > 1 && strings.HasPrefix(m.source(args[0]), "-") {
		if slices.Contains([]string{"-C", "-c"}, m.source(args[0])) {
			args = args[1:]
		}
		args = args[1:]
	}
	command, rest := m.source(args[0]), args[1:]
	switch command {
	case "config", "commit", "tag", "notes", "remote", "branch", "stash":
		for _, w := range rest {
			m.roles[w] = words
		}
	case "grep":
		for _, w := range m.patterns(rest, "ABCm") {
			m.roles[w] = words
		}
	}
	for _, w := range rest {
		for _, option := range []string{"--grep", "-S", "-G", "-m", "--author"} {
			if strings.HasPrefix(m.source(w), option) {
				m.roles[w] = words
			}
		}
	}
}
