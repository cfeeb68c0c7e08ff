// Package setup keeps what a repository's set-up command makes of a checkout, so that it runs once for each state of
// the files on which it depends.
//
// Store is the service. Prepare sets a checkout up: it puts the kept result into it, or runs the command and keeps what
// that has made. Ready puts a kept result into a lane. Tree is the files of a commit, from which Propose makes the
// proposal of muster init. The files: tree.go, store.go (Prepare, Ready, and the key of a result), ready.go
// (Ready), entry.go (what lies in the store, and its bounds), copy.go with copy.sh (files in and out), and
// submodules.go with submodules.sh (what fills submodules).
//
// The package keeps these invariants:
//
//   - A result is used only for a checkout whose files that the set-up depends on are the same, with the same command,
//     tools and environment. Where it is not known what a command reads, these are all files of the tree.
//   - An entry gets its name when it is complete and on the disk, and is never changed after that.
//   - What is put into a checkout is a copy. What lies in a checkout is listed and copied by programs that the launcher
//     of checks confines, and no link on the way is followed.
//   - What works at its own path only, such as a virtual environment, is put nowhere else.
package setup

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"muster/internal/detect"
	"muster/internal/git"
	"muster/internal/text"
)

// TreeFile is a file in the tree of a commit.
type TreeFile struct {
	Path string // with slashes
	Mode string // as git writes it: 100644
	ID   string // of its content
	size int64
}

// Tree is the regular files of a commit. Symbolic links and submodules are not among them.
type Tree struct {
	repo   *git.Repo
	Commit string
	Files  []TreeFile
}

// The bounds of what is read of a tree.
const (
	maxRead     = 300     // files
	maxReadSize = 1 << 20 // bytes of a file; a larger one says nothing
)

// ReadTree returns the files of a commit.
func ReadTree(ctx context.Context, repo *git.Repo, commit string) (t Tree, err error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
	if err != nil {
		return t, err
	}
	t = Tree{repo: repo, Commit: commit}
	for entry := range strings.SplitSeq(out, "\x00") {
		about, path, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(about) // mode, kind, id and size
		if !ok || len(fields) != 4 {
			continue
		}
		if fields[0] == "120000" || fields[1] != "blob" {
			continue
		}
		size, _ := strconv.ParseInt(fields[3], 10, 64) // git writes it
		t.Files = append(t.Files, TreeFile{Path: path, Mode: fields[0], ID: fields[2], size: size})
	}
	return t, nil
}

// Detectable returns the tree as package detect sees it. It reads so many files at most, and a file that cannot be read
// is empty: what is proposed is shown to people before anything is done with it.
func (t Tree) Detectable(ctx context.Context) detect.Tree {
	d, byPath, read := detect.Tree{}, map[string]TreeFile{}, map[string]string{}
	for _, f := range t.Files {
		d.Files = append(d.Files, f.Path)
		byPath[f.Path] = f
	}
	d.Read = func(path string) string {
		// git is asked for each file once. There are a few of them in a project, and some hundreds in a large
		// workspace.
		f, ok := byPath[path]
		text, isRead := read[path]
		if !ok || isRead || f.size > maxReadSize || len(read) >= maxRead {
			return text
		}
		text, _ = t.repo.Run(ctx, t.repo.CommonDir(), "cat-file", "blob", f.ID) // empty, as said above
		read[path] = text
		return text
	}
	return d
}

// Propose returns what the repository seems to need at a commit.
func Propose(ctx context.Context, repo *git.Repo, commit string) (detect.Proposal, error) {
	t, err := ReadTree(ctx, repo, commit)
	if err != nil {
		return detect.Proposal{}, err
	}
	p := detect.Look(t.Detectable(ctx))
	if files := leavesOutLanes(ctx, repo, commit); len(files) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf(".worktrees is named in %s: tools that leave out what is below it find "+
			"nothing in lanes, unless lanes are elsewhere: worktrees.dir: ../lanes", text.List(files, 3)))
	}
	return p, nil
}

// toolFiles are the files in which a project tells its tools what to leave out.
var toolFiles = []string{"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "conftest.py",
	"package.json", "jest.config.*", "vitest.config.*", "vite.config.*", ".mocharc*", "karma.conf.*",
	"playwright.config.*", ".eslintignore", ".eslintrc*", "eslint.config.*", ".prettierignore", "biome.json*",
	"tsconfig*.json", "deno.json*", ".ignore", ".rgignore", ".golangci.*", "phpunit.xml*", ".rspec", "Makefile",
	"makefile", "justfile", "*.sh"}

// leavesOutLanes returns the files of tools that name .worktrees at a commit. What cannot be told is no such file.
func leavesOutLanes(ctx context.Context, repo *git.Repo, commit string) (files []string) {
	args := []string{"grep", "-l", "-z", "-I", "-F", "-e", ".worktrees", commit, "--"}
	for _, name := range toolFiles {
		args = append(args, ":(top,glob)**/"+name)
	}
	out, _ := repo.Do(ctx, git.Call{Dir: repo.CommonDir(), Bare: true, Args: args})
	for _, name := range git.SplitNUL(out) {
		files = append(files, strings.TrimPrefix(name, commit+":"))
	}
	return files
}
