package teammate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster"
	"muster/internal/instructions"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/permissions"
	"muster/internal/redact"
	"muster/internal/skills"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/tool"
)

type workdir struct {
	claims    *claims
	noImages  bool
	directory string                 // where commands start; "": at the top
	readable  func() []string        // directories outside of its own that the member may read
	last      *guarded[code.Workdir] // where the last tool of the member has run, or one of its subagents'

	mu      sync.Mutex
	scratch string // the member's scratch checkout, once made
	commit  string // the commit of the scratch checkout
}

// subagentDir is where the tools of a subagent run: where the member's do. Its model may be another one.
type subagentDir struct {
	*workdir
	noImages  bool
	onlyReads bool // whatever tool may come to work in it
}

func (d subagentDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.workdir.Workdir(ctx)
	at.NoImages = d.noImages
	if d.onlyReads {
		at.Writable, at.Why = false, "you only read"
	}
	return at, err
}

// Workdir returns where a tool runs: the lane, checked at every call, or a scratch checkout, from which nothing lands.
func (w *workdir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := w.find(ctx)
	if err != nil {
		return at, err
	}
	isMissing := w.directory != "" && !at.Enter(w.directory)
	w.last.change(func(last *code.Workdir) {
		isMissing = isMissing && (last.Dir != at.Dir || last.Sub != "")
		*last = at
	})
	if isMissing {
		w.claims.diary.told(ctx, fmt.Sprintf("%s is not in %s: commands of %s start at the top", w.directory,
			filepath.Base(at.Dir), w.claims.name))
	}
	return at, nil
}

func (w *workdir) find(ctx context.Context) (code.Workdir, error) {
	s := code.Workdir{ReadOnly: w.readable(), NoImages: w.noImages}
	if err := w.claims.verify(ctx); err != nil {
		return s, err
	}
	if t, ok := w.claims.CurrentTask(); ok {
		dir, err := w.claims.worktrees.Workdir(ctx, t.Worktree) // not Enter: its owner may be in the middle of a rebase
		s.Dir, s.Writable = dir, true
		return s, err
	}
	dir, ok, err := w.claims.own.dir(ctx)
	if ok || err != nil {
		s.Dir, s.Writable = dir, true
		return s, err
	}
	s.Why = "your working directory is a read-only view of what has landed: call claim_task, then write in its lane"
	tip, err := w.claims.lander.Target(ctx)
	if err != nil {
		return s, err
	}
	// The checkout follows the target. Tools that only read run side by side: one of them makes it.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scratch == "" || w.commit != tip {
		if s.Dir, err = w.claims.worktrees.Scratch(ctx, w.claims.name, tip); err != nil {
			return s, err
		}
		w.scratch, w.commit = s.Dir, tip
	}
	s.Dir = w.scratch
	return s, nil
}

// readable returns what a member may read outside of its directory: outputs, its transcript, skills, and memories.
func readable(
	home paths.Dir, name muster.Name, list []skills.Skill, remembered func() (repository, user memory.Dir),
) []string {
	dirs := []string{home.Outputs(), filepath.Join(home.Transcripts(), string(name))}
	for _, skill := range skills.Usable(list) {
		dirs = append(dirs, skill.Dir)
	}
	if remembered != nil {
		repository, user := remembered()
		for _, d := range []memory.Dir{repository, user} {
			if d.Path != "" {
				dirs = append(dirs, d.Path)
			}
		}
	}
	return dirs
}

// scratchView looks at what a member without a task has changed where its tools run: nothing lands from there. The
// member is told after the command, and once more when it stops.
type scratchView struct {
	claims     *claims
	isConfined bool // its commands only read there
	told       guarded[scratchTold]
}

type scratchTold struct {
	after  string // the files that a command's result has named last
	atStop bool   // a reminder was given, and there were changes ever since
}

const maxScratchFiles = 8

// changes names what the member has changed in its scratch checkout; "" if it has a lane, or cannot write.
func (v *scratchView) changes(ctx context.Context) string {
	_, hasTask := v.claims.CurrentTask()
	if _, hasLane := v.claims.own.get(); hasTask || hasLane || v.isConfined {
		return ""
	}
	run, err := v.claims.run(ctx)
	var files []string
	if err == nil {
		// By the record: to ask the Lander for the target would put back one that the member has just moved.
		files, err = v.claims.worktrees.ScratchChanges(ctx, v.claims.name, run.MayBeAt())
	}
	if err != nil { // the end of the run looks again
		v.claims.diary.dropped(ctx, "looking at the scratch checkout", err)
		return ""
	}
	return text.EscapeTags(text.List(files, maxScratchFiles))
}

// around adds to the result of a call what it has changed in the scratch checkout. Only commands can.
func (v *scratchView) around(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	if c.Name != "bash" && c.Name != "subagent" || err != nil || c.Name == "bash" && onlyReads(c) {
		return r, err
	}
	files := v.changes(ctx)
	isNews := false
	v.told.change(func(t *scratchTold) {
		isNews = files != "" && files != t.after
		t.after = files
	})
	if isNews {
		r.Parts = append(r.Parts, llm.Text{Text: fmt.Sprintf("\n[Changes in this directory do not land: it is a view "+
			"of what has landed. You have changed %s. To land the change, call task_create and claim_task, and make "+
			"it in the lane of the task.]", files)})
	}
	return r, err
}

// onlyReads reports whether a command is known to change nothing: to look after it would cost a git process.
func onlyReads(c llm.Call) bool {
	plan := permissions.Policy{Mode: permissions.Plan}
	return plan.Decide(permissions.NewCall(c.Name, c.Input, "", nil), nil).Action == permissions.Allow
}

// reminder is what a member reads that stops with changes in its scratch checkout, once.
func (v *scratchView) reminder(ctx context.Context) string {
	files := v.changes(ctx)
	isNews := false
	v.told.change(func(t *scratchTold) { isNews, t.atStop = files != "" && !t.atStop, files != "" })
	if !isNews {
		return ""
	}
	return fmt.Sprintf("You have changed %s where nothing lands. If it should land: task_create, claim_task, and "+
		"change it in the task's lane. If not, take it back (git checkout, git clean). If you just end again, it "+
		"is put aside, and the run does not count as done.", files)
}

// The limits of what a conversation is told of the instructions below the root.
const (
	maxNestedTotal = 48 << 10 // bytes
	maxNestedDepth = 32       // directories on the way to a file

	maxCommandWords = 300  // of a command that are looked at for paths
	maxPathBytes    = 1000 // of a word that may be one
)

// nestedInstructions tells a model what the project says about a directory when a tool first touches a file there. The
// member has one, and each of its subagents. It is kept in memory only: to be told again does no harm.
type nestedInstructions struct {
	last    *guarded[code.Workdir]                 // where the last tool has run
	files   *instructions.Files                    // of the user's checkout
	rules   func() []instructions.Rule             // of the user's checkout, for some paths; read once
	opening func() []instructions.Found            // of directories, which the first message has; read once
	tell    func(ctx context.Context, line string) // people, of what is left out
	secrets *redact.Secrets

	mu   sync.Mutex
	told map[string]string // the text of each directory, and of each rule by its file
	size int               // of what was told
}

func newNested(
	last *guarded[code.Workdir], files *instructions.Files, secrets *redact.Secrets, tell func(context.Context, string),
) *nestedInstructions {
	rules := sync.OnceValue(func() []instructions.Rule { return files.Read().Rules })
	return &nestedInstructions{last: last, files: files, rules: rules, opening: sync.OnceValue(files.OfDirectory),
		tell: tell, secrets: secrets}
}

func (n *nestedInstructions) ofSubagent() *nestedInstructions {
	return &nestedInstructions{last: n.last, files: n.files, rules: n.rules, opening: n.opening, tell: n.tell,
		secrets: n.secrets}
}

func (n *nestedInstructions) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told, n.size = nil, 0
}

// around adds the instructions of the directories that a call touched to its result. A call that failed adds none,
// because its path may be wrong; but a command that failed, as tests do, adds those of paths that exist.
func (n *nestedInstructions) around(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	isCommand := c.Name == "bash"
	if err != nil || r.IsError && !isCommand {
		return r, err
	}
	at, paths := n.last.get(), namedPaths(c)
	if at.Dir == "" {
		return r, nil
	}
	for i := range paths {
		paths[i] = at.Below(paths[i])
	}
	if isCommand {
		paths = commandPaths(at, c)
	}
	for _, p := range paths {
		for _, text := range n.next(ctx, at.Dir, p) {
			r.Parts = append(r.Parts, llm.Text{Text: "\n" + text})
		}
	}
	return r, nil
}

// commandPaths returns existing paths that a command names. What it misses is told with the next call.
func commandPaths(start code.Workdir, c llm.Call) (paths []string) {
	dir := start.Dir
	var in struct{ Command, Cmd, Workdir, Cwd string } // as models call it
	_ = json.Unmarshal(c.Input, &in)                   // other fields may be of any kind
	words := strings.FieldsFunc(cmp.Or(in.Command, in.Cmd), func(r rune) bool {
		return strings.ContainsRune(" \t\r\n;|&<>()`$\"'={},:", r)
	})
	at, before := ".", ""
	workdir := start.Below(cmp.Or(in.Workdir, in.Cwd))
	if !filepath.IsAbs(workdir) {
		workdir = filepath.Join(dir, workdir)
	}
	if rel, err := filepath.Rel(dir, workdir); err == nil && filepath.IsLocal(rel) {
		at = rel
		paths = append(paths, at)
	}
	for _, word := range words[:min(len(words), maxCommandWords)] {
		if i := strings.IndexAny(word, "*?["); i >= 0 { // the directory in which names are looked for
			word = word[:strings.LastIndexByte(word[:i], '/')+1]
		}
		word = strings.TrimSuffix(word, "...") // all packages below, to the go command
		if rel, err := filepath.Rel(dir, word); filepath.IsAbs(word) && err == nil {
			word = rel
		}
		if word == "" || len(word) > maxPathBytes {
			continue
		}
		for _, p := range []string{word, filepath.Join(at, word)} {
			if _, err := os.Lstat(filepath.Join(dir, p)); err == nil && filepath.IsLocal(p) {
				paths = append(paths, p) // one that comes twice is told once
			}
		}
		if before == "cd" {
			at = filepath.Join(at, word)
		}
		before = word
	}
	return paths
}

// next returns what the project says about a path and was not told yet: the rules for it, and the instructions of its
// directories.
func (n *nestedInstructions) next(ctx context.Context, dir, name string) (texts []string) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return nil
		}
		name = rel
	}
	if name = filepath.Clean(name); name == "." || !filepath.IsLocal(name) {
		return nil
	}
	name = filepath.ToSlash(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	addRules := func(rules []instructions.Rule) {
		for _, rule := range rules {
			if rule.Covers(name) {
				texts = n.add(texts, rule.File, rule.Text, "if you work on such files")
			}
		}
	}
	addRules(n.rules())
	parts := strings.Split(name, "/")
	for i := range parts[:min(len(parts), maxNestedDepth)] {
		at := path.Join(parts[:i+1]...)
		if fi, err := os.Lstat(filepath.Join(dir, at)); err != nil || !fi.IsDir() {
			break // a file; or a link, which is not followed
		}
		found := instructions.OfDir(dir, at)
		isKnown := func(of instructions.Found) bool { return of.Text == found.Text }
		if !slices.ContainsFunc(n.opening(), isKnown) {
			texts = n.add(texts, at, found.Text, "if you work in this directory")
		}
		addRules(found.Rules)
		for _, line := range n.files.News(found.Left) {
			n.tell(ctx, "instructions: "+line)
		}
	}
	return texts
}

// add appends a text if it is not what was told of its file or directory.
func (n *nestedInstructions) add(texts []string, of, text, when string) []string {
	text = n.secrets.String(text)
	if text == "" || text == n.told[of] {
		return texts
	}
	if n.told == nil {
		n.told = map[string]string{}
	}
	n.told[of] = text
	if n.size += len(text); n.size > maxNestedTotal {
		text = fmt.Sprintf("<instructions of=%q>\n[not shown: there were many; read them with read_file %s]\n"+
			"</instructions>", of, when)
	}
	return append(texts, text)
}
