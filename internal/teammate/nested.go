package teammate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/llm"
	"muster/tool"
)

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
	claims  *claims
	scratch string // the path of the member's scratch checkout
	secrets *redact.Secrets

	mu   sync.Mutex
	told map[string]string // the text of each file, by its directory
	size int               // of what was told
}

func (n *nestedInstructions) ofSubagent() *nestedInstructions {
	return &nestedInstructions{claims: n.claims, scratch: n.scratch, secrets: n.secrets}
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
	dir := n.scratch
	if t, ok := n.claims.CurrentTask(); ok {
		var lost error
		if dir, lost = n.claims.worktrees.Workdir(ctx, t.Worktree); lost != nil {
			return r, nil // the call is done; the next one says what is wrong with the lane
		}
	}
	paths := namedPaths(c)
	if isCommand {
		paths = commandPaths(dir, c)
	}
	for _, p := range paths {
		for _, text := range n.next(dir, p) {
			r.Parts = append(r.Parts, llm.Text{Text: "\n" + text})
		}
	}
	return r, nil
}

// commandPaths returns existing paths that a command names. What it misses is told with the next call.
func commandPaths(dir string, c llm.Call) (paths []string) {
	var in struct{ Command, Cmd string } // as models call it
	_ = json.Unmarshal(c.Input, &in)     // other fields may be of any kind
	words := strings.FieldsFunc(cmp.Or(in.Command, in.Cmd), func(r rune) bool {
		return strings.ContainsRune(" \t\r\n;|&<>()`$\"'={},:", r)
	})
	at, before := ".", ""
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

func (n *nestedInstructions) next(dir, name string) (texts []string) {
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
	parts := strings.Split(filepath.ToSlash(name), "/")
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range parts[:min(len(parts), maxNestedDepth)] {
		at := path.Join(parts[:i+1]...)
		if fi, err := os.Lstat(filepath.Join(dir, at)); err != nil || !fi.IsDir() {
			break // a file; or a link, which is not followed
		}
		text := n.secrets.String(prompt.Instructions(dir, at, prompt.MaxNestedInstructions))
		if text == "" || text == n.told[at] {
			continue
		}
		if n.told == nil {
			n.told = map[string]string{}
		}
		n.told[at] = text
		if n.size += len(text); n.size > maxNestedTotal {
			text = fmt.Sprintf("<instructions dir=%q>\n[not shown: there were many; read the AGENTS.md or CLAUDE.md "+
				"of this directory if you work in it]\n</instructions>", at)
		}
		texts = append(texts, text)
	}
	return texts
}
