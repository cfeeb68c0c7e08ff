package code

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// maxGlobFiles is how many files are listed. The rest is only counted.
const maxGlobFiles = 1000

// The orders in which files are listed.
const (
	sortByName = "name"
	sortByAge  = "age"
)

// globInput is the input of glob.
type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Sort    string `json:"sort,omitempty" jsonschema:"age: last changed first"`
}

// globTool returns the tool glob.
func (t toolset) globTool() llm.Tool {
	return tool.New("glob", prompt.Tool("glob"), t.glob, tool.ReadOnly(), tool.Enum("sort", sortByName, sortByAge))
}

// glob splits the pattern into the directory that it begins with and the rest, so that only this directory
// is listed.
func (t toolset) glob(ctx context.Context, in globInput) (llm.Result, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return llm.ErrorResult("%q is not a pattern: use *, **, ?, [a-z] and {a,b}.", in.Pattern), nil
	}
	if problem := checkGlob(pattern); problem != "" {
		return llm.ErrorResult("%s", problem), nil
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if in.Path != "" && !path.IsAbs(pattern) {
		if !strings.Contains(pattern, "/") {
			pattern = "**/" + pattern
		}
		pattern = escapeGlob(filepath.ToSlash(in.Path)) + "/" + pattern
	}
	dir, rest := ".", "**/"+pattern
	if strings.Contains(pattern, "/") {
		dir, rest = doublestar.SplitPattern(pattern)
	}
	at, err := t.open(ctx, filepath.FromSlash(dir), false)
	if err != nil {
		return tool.FromError(err)
	}
	defer at.root.Close()
	return t.listMatches(ctx, at, rest, in)
}

// escapeGlob returns a pattern that matches one path.
func escapeGlob(path string) string {
	quote := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`)
	return strings.TrimSuffix(quote.Replace(path), "/")
}

// listMatches lists the files below at that match pattern, which is the rest of the pattern of the call.
func (t toolset) listMatches(ctx context.Context, at confinedPath, pattern string, in globInput) (llm.Result, error) {
	all, err := at.files(ctx, t)
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	if err != nil {
		all = nil // a missing directory has no file that matches
	}
	var found []foundFile
	dir := keptDirectory{at: at}
	defer dir.close()
	for _, name := range all {
		if name == "." || !doublestar.MatchUnvalidated(pattern, name) {
			continue
		}
		// Git also lists deleted files, and directories that are repositories of their own.
		if fi, err := dir.lstat(name); err == nil && !fi.IsDir() {
			found = append(found, foundFile{at.shown(name), fi.ModTime()})
		}
	}
	if in.Sort == sortByAge { // files of the same age stay in the order of their names
		slices.SortStableFunc(found, func(a, b foundFile) int { return b.changed.Compare(a.changed) })
	}
	return tool.Text(showFound(at, found, pattern, in.Pattern)), nil
}

// foundFile is a file that glob lists.
type foundFile struct {
	name    string
	changed time.Time
}

// keptDirectory keeps the directory of the last file open, because a root opens each directory above a file again.
type keptDirectory struct {
	at   confinedPath
	name string
	root *os.Root // nil before the first file
}

// lstat describes a file that files has listed.
func (d *keptDirectory) lstat(name string) (os.FileInfo, error) {
	dir, base := path.Split(name)
	if d.root == nil || dir != d.name {
		d.close()
		root, err := d.at.root.OpenRoot(d.at.join(dir) + "/") // a pipe is none
		if err != nil {
			return nil, err
		}
		d.root, d.name = root, dir
	}
	return d.root.Lstat(base)
}

// close closes the directory.
func (d *keptDirectory) close() {
	if d.root != nil {
		_ = d.root.Close()
		d.root = nil
	}
}

// showFound returns the list of files. asked is the whole pattern as the model wrote it.
func showFound(at confinedPath, found []foundFile, pattern, asked string) string {
	n := len(found)
	names := make([]string, min(n, maxGlobFiles), min(n, maxGlobFiles)+1)
	for i := range names {
		names[i] = found[i].name
	}
	switch {
	// A pattern that names a directory matches no file. The model is told so, or it would think that there is
	// nothing.
	case n == 0:
		dir := at.join(strings.TrimPrefix(pattern, "**/"))
		if fi, err := at.root.Stat(dir); err == nil && fi.IsDir() {
			return fmt.Sprintf("%s is a directory: %s/** lists its files.", asked, strings.TrimSuffix(asked, "/"))
		}
		return fmt.Sprintf("No file matches %s.", asked)
	case n > maxGlobFiles:
		names = append(names,
			fmt.Sprintf("[the first %d of %d files: narrow the pattern]", maxGlobFiles, n))
	}
	return strings.Join(names, "\n")
}

// files lists the files at or below s as sorted slash paths relative to it ("." for s itself). In a git work tree it
// leaves out the ignored ones, unless s itself is ignored. It never lists git's own files and follows no links.
func (s confinedPath) files(ctx context.Context, t toolset) (list []string, err error) {
	fi, err := s.root.Stat(s.rel)
	if err != nil {
		return nil, s.explain(err)
	}
	if !fi.IsDir() {
		return []string{"."}, nil
	}
	// Git is asked only about the working directory. A read-only root is no work tree, and git would look
	// above it.
	if s.home && t.launcher != nil {
		list = t.listByGit(ctx, s.root.Name(), filepath.ToSlash(s.rel))
	}
	if len(list) == 0 {
		list, err = s.walk(ctx)
	}
	return list, err
}

// listTime is how long git may take to list files. After that the directories are walked.
const listTime = 10 * time.Second

// maxListBytes is how many bytes of names git may print: those of a million files.
const maxListBytes = 64 << 20

// listByGit returns the files below a directory of a working tree, "." for all of it, that git tracks or would track,
// sorted and relative to the directory. git runs as the commands of a member do, confined where these are. It returns
// none outside of a working tree, in an ignored directory, and where git takes too long.
func (t toolset) listByGit(ctx context.Context, tree, dir string) []string {
	// It may wait for a pipe that a command has left in the place of a file that it opens.
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	out := boundedBuffer{most: maxListBytes}
	p, err := t.launcher.Start(ctx, proc.Spec{Dir: tree, Out: &out,
		Env: append(Environ(ctx, t.options.Environ, tree), "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0"),
		Argv: []string{"git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others",
			"--exclude-standard", "--deduplicate", "--", dir}})
	if err != nil {
		return nil
	}
	if exit, err := p.Wait(); err != nil || exit != 0 {
		return nil
	}
	list := git.SplitNUL(out.String())
	for i, name := range list {
		list[i] = strings.TrimPrefix(name, dir+"/")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// walk lists the files below s where git cannot: outside of a work tree, and in a directory that git ignores.
func (s confinedPath) walk(ctx context.Context) (list []string, err error) {
	top := filepath.ToSlash(s.rel)
	err = fs.WalkDir(durable.Dirs{Root: s.root}, top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case len(list) >= maxListed:
			return fs.SkipAll
		case err != nil && name == top:
			return s.explain(err)
		case err != nil:
			return nil // a directory that cannot be read must not hide the others
		case d.IsDir() && (d.Name() == ".git" || strings.Count(name, "/") > maxDepth):
			return fs.SkipDir
		case d.Name() != ".git" && !d.IsDir():
			if top != "." {
				name = strings.TrimPrefix(name, top+"/")
			}
			list = append(list, name)
		}
		return nil
	})
	slices.Sort(list)
	return list, err
}

// join returns the path in root of name, which files has listed.
func (s confinedPath) join(name string) string { return filepath.Join(s.rel, filepath.FromSlash(name)) }

// shown returns name, which files has listed, as the model can use it in another call.
func (s confinedPath) shown(name string) string {
	if s.show == "." {
		return name
	}
	return path.Join(filepath.ToSlash(s.show), name)
}
