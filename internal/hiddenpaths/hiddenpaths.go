// Package hiddenpaths explains failures of confined programs that come from what the sandbox hides: a directory of
// PATH, a toolchain that a variable names, or a file below the home directory. It names the setting that shows it.
package hiddenpaths

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/text"
	"muster/internal/toolchains"
)

// Paths holds the directories that the environment names and the sandbox hides.
type Paths struct {
	home  string
	shown []string // directories below the home directory, and their parts that programs see
	own   []string
	rules sandbox.Rules
	path  []string // the directories of PATH
	// Programs are directories of PATH that are there, and hidden.
	Programs []string
	// Variables are variables of the environment, such as JAVA_HOME=/home/ann/jdk, whose directory is there, and
	// hidden.
	Variables []string

	tell func(text string)
	told sync.Map
}

// Find returns what programs under the rules do not see of what an environment names. home is the user's home
// directory; "" is none. Paths below the directories own are never reported. tell tells the user, once, what a program
// has missed.
func Find(env []string, home string, r sandbox.Rules, own []string, tell func(text string)) *Paths {
	p := &Paths{home: home, shown: slices.Clone(own), own: own, rules: r, tell: tell}
	for _, x := range r {
		if x.Access == sandbox.Read || x.Access == sandbox.Write {
			p.shown = append(p.shown, x.Path)
		}
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name != "PATH" && name != "SSL_CERT_DIR" && !toolchains.IsVariable(name) {
			continue
		}
		if name == "PATH" {
			p.path = filepath.SplitList(value)
		}
		for _, dir := range filepath.SplitList(value) {
			isOwn := slices.ContainsFunc(own, func(o string) bool { return sandbox.IsBelow(o, dir) })
			if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(dir) || isOwn || r.Show(dir) {
				continue
			}
			if name == "PATH" {
				p.Programs = append(p.Programs, dir)
			} else {
				p.Variables = append(p.Variables, name+"="+dir)
			}
		}
	}
	return p
}

// Line returns a line about what is hidden and may be why a program has failed, as the end of its output says, and
// tells the user; "" where there is nothing of that kind.
func (p *Paths) Line(s proc.Spec, output string) string {
	own, home := []string{s.Dir, proc.Variable(s.Env, "TMPDIR")}, proc.Variable(s.Env, "HOME")
	if home != "" && p.home != "" { // a program may have another home directory than the user
		output = strings.ReplaceAll(output, home+"/", p.home+"/")
	}
	path := p.cause(output, own)
	if path == "" {
		return ""
	}
	dir := p.named(path) // only directories that the environment names are suggested
	if _, told := p.told.LoadOrStore(dir, true); dir != "" && !told && p.tell != nil {
		p.tell(fmt.Sprintf("%s is hidden from commands, and one has failed without it; to show it, in your own "+
			"config.yaml: sandbox: {read: %q}", text.OneLine(path), dir))
	}
	return path + " is hidden from commands; only the user can show it, with the setting sandbox.read"
}

// complaints are how programs say that they cannot find or use something, in small letters.
var complaints = []string{"permission denied", "no such file", "not found", "cannot find", "can't find", "enoent",
	"eacces", "operation not permitted", "cannot open", "can't open", "not executable", "does not exist",
	"doesn't exist"}

// cause returns a hidden path that the output complains about; "" where there is none. What is in the directories own
// is not hidden.
func (p *Paths) cause(output string, own []string) string {
	for line := range strings.Lines(output) {
		small := strings.ToLower(line)
		if !slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(small, c) }) {
			continue
		}
		dirs := p.directories()
		if p.home != "" {
			dirs = append(dirs, p.home)
		}
		for _, dir := range dirs {
			for _, rest := range strings.Split(line, dir)[1:] { // not word by word: a path may have blanks
				path := dir + cutWord(rest)
				isIn := func(own string) bool { return sandbox.IsBelow(own, path) }
				if p.isHidden(path) && !slices.ContainsFunc(own, isIn) {
					return path
				}
			}
		}
		for _, word := range strings.FieldsFunc(line, isBetween) {
			if path := p.program(word); path != "" {
				return path
			}
		}
	}
	return ""
}

// isBetween reports whether a character stands between the words of a message.
func isBetween(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`‘’“”()[]{}<>,;:=", r) }

// cutWord returns a text up to the next character between words.
func cutWord(s string) string {
	if end := strings.IndexFunc(s, isBetween); end >= 0 {
		return s[:end]
	}
	return s
}

// program returns the path of a program in PATH that is hidden, or what a link there leads to; "" where there is none.
func (p *Paths) program(name string) string {
	if filepath.Base(name) != name || name == "." || name == ".." {
		return ""
	}
	for _, dir := range p.path {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(dir) || p.rules.Show(path) {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		isIn := func(own string) bool { return sandbox.IsBelow(own, real) }
		switch {
		case err != nil || slices.ContainsFunc(p.own, isIn) || toolchains.HasKeys(p.home, real): // on purpose
		case slices.Contains(p.Programs, dir):
			return path
		default:
			return real
		}
	}
	return ""
}

// isHidden reports whether a path is in a hidden directory that the environment names, or below the home directory
// and not shown. It does not check that the path exists, so that the output does not reveal it. Paths with keys are
// never named.
func (p *Paths) isHidden(path string) bool {
	isIn := func(dir string) bool { return sandbox.IsBelow(dir, path) }
	return p.named(path) != "" ||
		p.home != "" && path != p.home && isIn(p.home) && !toolchains.HasKeys(p.home, path) &&
			!slices.ContainsFunc(p.shown, isIn)
}

// named returns the hidden directory that the environment names and a path is in; "" where there is none.
func (p *Paths) named(path string) string {
	for _, dir := range p.directories() {
		if sandbox.IsBelow(dir, path) {
			return dir
		}
	}
	return ""
}

// directories returns the hidden directories that the environment names.
func (p *Paths) directories() []string {
	dirs := slices.Clone(p.Programs)
	for _, kv := range p.Variables {
		_, dir, _ := strings.Cut(kv, "=")
		dirs = append(dirs, dir)
	}
	return dirs
}
