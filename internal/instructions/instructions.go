// Package instructions finds the files in which a project and its user tell agents what to do, and returns them as a
// model reads them.
//
// They are AGENTS.md and CLAUDE.md, the files below .claude that agents know, what these import by @path, and the
// user's own at home. docs/context.md has the order. Of files that import each other, lead to each other by links, or
// have the same text, the first is shown.
//
// The files are foreign text: how much is read is bounded, marks of the runtime are escaped, and a file of the
// repository leads, by a link or an import, nowhere out of it, and to no file with keys. A line for people
// says what is left out or cut.
package instructions

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster/internal/agentfiles"
	"muster/internal/durable"
	"muster/internal/frontmatter"
	"muster/internal/text"
)

// The limits of what is read.
const (
	MaxProject = 32 << 10 // bytes of the repository's files
	MaxOther   = 12 << 10 // bytes of the user's own, of those of a directory, and of a rule
	maxFiles   = 200      // files that are looked at
)

// The names of the files of a directory, in the order in which they are read.
var (
	names      = []string{"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"}
	localNames = []string{"CLAUDE.local.md"}
	// homeNames are those in the user's home.
	homeNames = []string{".agents/AGENTS.md", ".claude/CLAUDE.md"}
	ruleFiles = agentfiles.Kind{Dir: "rules", All: true}
)

// Files are where the instructions of a repository and its user are looked for. It must not be copied.
type Files struct {
	Root   string // of the repository: the user's checkout
	Home   string // the user's home directory; "" is none
	Config string // the directory of the user's settings; "" is none
	// Directory is the directory below Root in which the members work: the files of the directories down to it hold for
	// all that they do. "" is Root.
	Directory string

	told sync.Map // what people were told
}

// Found is what was found.
type Found struct {
	Text  string   // as a model reads it; "" if there is none
	Left  []string // what was left out or cut, for people
	Rules []Rule   // that hold for some paths only
}

// Read returns the instructions that hold for all work: first the user's, then the repository's, and then those of the
// directories down to Directory.
func (f *Files) Read() Found {
	r := &reader{userHome: f.Home, show: f.show, seen: map[string]bool{}}
	rules := agentfiles.Find(ruleFiles, f.Root, f.Home, f.Config)
	isUsers := func(rule agentfiles.File) bool { return rule.IsUser }

	isNone := func(dir string) bool { return dir == "" }
	r.bases, r.limit, r.rest = slices.DeleteFunc([]string{f.Home, f.Config}, isNone), MaxOther, MaxOther
	for _, name := range homeNames {
		r.named(f.Home, name)
	}
	r.named(f.Config, "AGENTS.md")
	r.rules(slices.DeleteFunc(slices.Clone(rules), func(x agentfiles.File) bool { return !isUsers(x) }), "")

	users := len(r.texts) + len(r.found.Rules)
	r.bases, r.limit, r.rest = []string{f.Root}, MaxProject, MaxProject
	for _, name := range names {
		r.named(f.Root, name)
	}
	r.rules(slices.DeleteFunc(slices.Clone(rules), isUsers), "")
	for _, name := range localNames {
		r.named(f.Root, name)
	}
	if len(r.texts)+len(r.found.Rules) == users {
		r.foreign(f.Root)
	}
	found := r.end()
	for _, of := range f.OfDirectory() {
		found.Text = strings.Trim(found.Text+"\n"+of.Text, "\n")
		found.Left, found.Rules = append(found.Left, of.Left...), append(found.Rules, of.Rules...)
	}
	return found
}

// OfDirectory returns the instructions of each directory from below Root down to Directory.
func (f *Files) OfDirectory() (all []Found) {
	at := ""
	for name := range strings.SplitSeq(f.Directory, "/") {
		if at = path.Join(at, name); name != "" {
			all = append(all, OfDir(f.Root, at))
		}
	}
	return all
}

// show returns the name of a file as people read it.
func (f *Files) show(name string) string {
	for _, at := range []struct{ base, show string }{{f.Root, ""}, {f.Home, "~"}} {
		if rel, err := filepath.Rel(at.base, name); at.base != "" && err == nil && filepath.IsLocal(rel) {
			return text.OneLine(path.Join(at.show, filepath.ToSlash(rel)))
		}
	}
	return text.OneLine(filepath.ToSlash(name))
}

// News returns those of the lines for people that it has not returned before.
func (f *Files) News(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		_, wasTold := f.told.LoadOrStore(line, true)
		return wasTold
	})
}

// OfDir returns the instructions of a directory below root, which may be a lane.
func OfDir(root, dir string) Found {
	if parts := strings.Split(dir, "/"); slices.Contains(parts, ".claude") || slices.Contains(parts, ".agents") {
		return Found{} // the files of the directory above
	}
	show := func(name string) string {
		rel, err := filepath.Rel(root, name)
		if err != nil {
			rel = filepath.Base(name)
		}
		return text.OneLine(filepath.ToSlash(rel))
	}
	r := &reader{bases: []string{root}, limit: MaxOther, rest: MaxOther, show: show, seen: map[string]bool{}}
	at := filepath.Join(root, filepath.FromSlash(dir))
	for _, name := range slices.Concat(names, localNames) {
		r.named(at, name)
	}
	if isDir(filepath.Join(at, ".claude")) || isDir(filepath.Join(at, ".agents")) {
		rules := agentfiles.Find(ruleFiles, at, "", "")
		for i := range rules {
			rules[i].Place = path.Join(dir, rules[i].Place)
		}
		r.rules(rules, dir)
	}
	return r.end()
}

func isDir(name string) bool {
	fi, err := os.Lstat(name)
	return err == nil && fi.IsDir()
}

// reader collects instructions.
type reader struct {
	bases    []string                 // the directories that files may lie in
	userHome string                   // what ~ stands for; "": nothing
	show     func(name string) string // the name of a file for people
	limit    int64                    // bytes of all files
	rest     int64                    // bytes that may still be read
	seen     map[string]bool          // paths without links, and sums of texts
	files    int
	texts    []string
	found    Found
}

// source is a file that was read.
type source struct {
	name, real string // its path as it was named, and without links
	show       string
	depth      int // imports on the way to it
}

func (r *reader) end() Found {
	r.found.Text = strings.Join(r.texts, "\n")
	return r.found
}

// leave says what was left out.
func (r *reader) leave(format string, a ...any) {
	if line := fmt.Sprintf(format, a...); !slices.Contains(r.found.Left, line) {
		r.found.Left = append(r.found.Left, line)
	}
}

// named adds a file that has one of the names of instructions, if there is one, and what it imports.
func (r *reader) named(dir, name string) {
	if dir == "" {
		return
	}
	full := filepath.Join(dir, filepath.FromSlash(name))
	fi, err := os.Lstat(full)
	if isMissing(err) {
		return
	}
	at, content, err := r.open(full)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && holdsKeys(full, content) {
		err = errKeys
	}
	if err != nil {
		r.skip(r.show(full), err)
		return
	}
	r.texts = append(r.texts, r.add(source{full, at.real, r.show(full), 0}, content, at.size)...)
}

// skip tells the model and people of a file that is not read.
func (r *reader) skip(show string, err error) {
	if errors.Is(err, errSeen) {
		return
	}
	r.leave("%s is not read: %v", show, cause(err))
	r.texts = append(r.texts, block(show, fmt.Sprintf("[not read: %v]", cause(err))))
}

// The errors for files that are not read.
var (
	errNotText = errors.New("it is not text in UTF-8")
	errSeen    = errors.New("it was read before")
	errKeys    = errors.New("it has what looks like a key")
	errMany    = fmt.Errorf("it comes after %d others", maxFiles)
)

func (r *reader) errFull() error {
	return fmt.Errorf("the files before it fill the limit of %d KiB", r.limit>>10)
}

// opened is a file that was opened and read.
type opened struct {
	real string
	size int64
}

// open returns the beginning of a file, as much as may still be read. The error is errSeen if it, or one with the same
// text, was read before.
func (r *reader) open(name string) (at opened, content string, err error) {
	base, rel := "", ""
	for _, base = range r.bases {
		if at.real, rel, err = agentfiles.Resolve(name, base); !errors.Is(err, agentfiles.ErrOutside) {
			break
		}
	}
	switch {
	case r.seen[at.real] && at.real != "":
		return at, "", errSeen
	case errors.Is(err, agentfiles.ErrOutside) && r.userHome != "" && r.bases[0] == r.userHome:
		return at, "", errors.New("it leads out of your home directory")
	case err != nil:
		return at, "", err
	}
	if r.files++; r.files > maxFiles {
		return at, "", errMany
	}
	if r.rest <= 0 {
		return at, "", r.errFull()
	}
	f, err := durable.OpenBelow(strings.TrimSuffix(at.real, rel), at.real, os.O_RDONLY, 0)
	if err != nil {
		return at, "", err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return at, "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, r.rest))
	switch {
	case err != nil:
		return at, "", err
	case bytes.IndexByte(data, 0) >= 0:
		return at, "", errNotText
	}
	at.size, r.seen[at.real] = fi.Size(), true
	return at, strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), ""), nil
}

// add returns a file as a model reads it, and behind it the files that it imports. size is that of the whole file.
func (r *reader) add(at source, content string, size int64) (texts []string) {
	_, body := frontmatter.Split(content)
	body = strings.TrimSpace(body)
	sum := sumOf(body)
	if body == "" || r.seen[sum] {
		return nil
	}
	r.seen[sum] = true
	shown := text.EscapeTags(strings.TrimSpace(text.Clean(body)))
	if read := int64(len(content)); size > r.rest {
		shown += fmt.Sprintf("\n[cut: %d of %d bytes; read_file shows the rest]", r.rest, size)
		r.leave("%s is cut after %d of its %d bytes: %d KiB are read of all these files", at.show, r.rest, size,
			r.limit>>10)
		r.rest = 0
	} else {
		r.rest -= read
	}
	return append([]string{block(at.show, shown)}, r.imports(at, body)...)
}

// sumOf returns the same text for files that say the same. They may differ in blanks and in what they call themselves.
func sumOf(body string) string {
	words := strings.Fields(strings.NewReplacer("AGENTS.md", "", "CLAUDE.md", "").Replace(body))
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(words, " "))))
}

// rules adds the rules that hold everywhere, and keeps those that hold for some paths. dir is the directory whose rules
// they are, relative to the root.
func (r *reader) rules(all []agentfiles.File, dir string) {
	for _, rule := range all {
		if rule.Problem != "" {
			r.leave("%s is not read: %s", rule.Place, strings.TrimPrefix(rule.Problem, "it cannot be read: "))
			continue
		}
		patterns, bad := patternsOf(rule.Head["paths"])
		if len(bad) > 0 {
			r.leave("%s: its paths have no patterns %s, so these have no effect", rule.Place, strings.Join(bad, ", "))
		}
		for _, field := range []string{"globs", "applyto"} {
			if rule.Head[field] != nil && patterns == nil {
				r.leave("%s holds everywhere: its field %s has no effect, paths has", rule.Place, field)
			}
		}
		at, size := source{rule.Path, rule.Path, rule.Place, 0}, int64(len(rule.Body))
		if patterns == nil {
			if r.rest <= 0 {
				r.skip(rule.Place, r.errFull())
				continue
			}
			r.texts = append(r.texts, r.add(at, text.FirstBytes(rule.Body, int(r.rest)), size)...)
			continue
		}
		own := &reader{bases: r.bases, userHome: r.userHome, show: r.show, limit: MaxOther, rest: MaxOther,
			seen: maps.Clone(r.seen), found: r.found}
		texts := own.add(at, text.FirstBytes(rule.Body, MaxOther), size)
		r.found = own.found
		if len(texts) > 0 {
			r.found.Rules = append(r.found.Rules, Rule{rule.Place, strings.Join(texts, "\n"), dir, patterns})
		}
	}
}

// ofOthers are files of instructions that only other agents read.
var ofOthers = []string{"AGENT.md", "agents.md", "Agents.md", "claude.md", "Claude.md", "GEMINI.md",
	".github/copilot-instructions.md", ".cursorrules", ".cursor/rules", ".windsurfrules", ".windsurf/rules",
	".clinerules", ".junie/guidelines.md", ".rules"}

// foreign names the instructions for other agents in a repository that has none for muster.
func (r *reader) foreign(root string) {
	var there []string
	for _, name := range ofOthers {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			there = append(there, name)
		}
	}
	if len(there) > 0 {
		r.leave("%s: instructions for other agents, which are not read; an AGENTS.md with a line @FILE reads one",
			strings.Join(there, ", "))
	}
}

// block returns a file with marks around it.
func block(show, body string) string {
	return fmt.Sprintf("<instructions file=%q>\n%s\n</instructions>", show, body)
}

// cause returns an error without the path of this machine.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
