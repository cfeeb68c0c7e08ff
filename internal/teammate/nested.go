package teammate

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// The limits of what a conversation is told of the instructions below the root.
const (
	maxNestedTotal = 48 << 10 // bytes
	maxNestedDepth = 32       // directories on the way to a file
)

// nestedInstructions tells a model what the project says about a directory when a tool first touches a file there. The
// member has one for its conversation, and each of its subagents has its own.
// What it was told is kept in memory only: after a crash it is told once more, which does no harm.
type nestedInstructions struct {
	*self
	mu   sync.Mutex
	told map[string]string // the text of each file, by its directory
	size int               // of what was told
}

// reset forgets what was told: the model has lost it with its conversation.
func (n *nestedInstructions) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told, n.size = nil, 0
}

// around runs a call and adds the instructions of the directories that it touched to its result. A call that failed
// adds none, because its path may be wrong.
func (n *nestedInstructions) around(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	paths := touchedPaths(c)
	if err != nil || r.IsError || len(paths) == 0 {
		return r, err
	}
	t, ok := n.claims.CurrentTask()
	dir := filepath.Join(n.Home.Scratch(), string(n.name()))
	if ok {
		var lost error
		if dir, lost = n.Lanes.Workdir(ctx, t.Worktree); lost != nil {
			return r, nil // the call is done; the next one says what is wrong with the lane
		}
	}
	for _, p := range paths {
		for _, text := range n.next(dir, p) {
			r.Parts = append(r.Parts, llm.Text{Text: "\n" + text})
		}
	}
	return r, nil
}

// touchedPaths returns the paths that a call names.
func touchedPaths(c llm.Call) (paths []string) {
	var in struct {
		Path     string `json:"path"`
		FilePath string `json:"file_path"` // as other programs name it
	}
	// Input that does not fit names no path that the tool has taken.
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	for _, p := range []string{in.Path, in.FilePath} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// next returns the instructions of the directories from dir down to the path that the model has not been told yet.
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
		text := n.Secrets.String(prompt.Instructions(dir, at, prompt.MaxNestedInstructions))
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
