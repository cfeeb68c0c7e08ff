package confined

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/hiddenpaths"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/sandbox"
	"muster/internal/toolchains"
	"muster/internal/toolsettings"
	"muster/internal/worktree"
)

// Place is where a team works, and what its programs may touch there besides what all may.
type Place struct {
	Method *sandbox.Method
	Repo   *git.Repo
	Lanes  *worktree.Lanes
	State  paths.Dir // the state of the team
	// Home, UserDir and CacheDir are the user's home directory, settings and caches of muster; "" is none.
	Home, UserDir, CacheDir string
	// Environ is the environment of this process. It says where the toolchains are.
	Environ []string
	// Read and Write are paths that programs may read and write besides.
	Read, Write []string

	once  sync.Once
	shown sandbox.Rules // see toolchains
}

// toolchains returns the rules for what a program needs that knows of no repository, and for the user's own paths. They
// are those of the first call: to find them takes a look at each directory of PATH.
func (p *Place) toolchains() sandbox.Rules {
	p.once.Do(func() {
		// The user's settings, with keys among them, and what muster keeps of other repositories.
		own := []string{p.UserDir, p.CacheDir}
		hidden := slices.Concat(p.stateDirs(), own, []string{p.Repo.CommonDir()})
		// Hooks that the user has for all repositories are programs as those of PATH are.
		env := append(slices.Clone(p.Environ), "PATH="+p.Repo.HooksPath())
		p.shown = slices.Concat(sandbox.System(), toolchains.Rules(env, p.Home, hidden...), sandbox.Empty.Rules(own...))
	})
	return slices.Clip(p.shown)
}

// Hidden returns what programs do not see of what the user's environment names. tell tells the user what one has
// missed.
func (p *Place) Hidden(tell func(text string)) *hiddenpaths.Paths {
	own := append(p.stateDirs(), p.Repo.Root(), p.CacheDir)
	settings, _ := p.settings() // programs do not start without them
	return hiddenpaths.Find(p.Environ, p.Home, slices.Concat(p.toolchains(), settings, p.besides()), own, tell)
}

// besides returns the rules for the paths that the user has named. They count more than any other.
func (p *Place) besides() sandbox.Rules {
	return append(sandbox.Read.Rules(p.Read...), sandbox.Write.Rules(p.Write...)...)
}

// gitNames are what a git directory has for git, besides HEAD, MERGE_MSG and others in capital letters.
var gitNames = []string{"commondir", "description", "gc.pid", "gitdir", "hooks", "index", "info", "lfs", "logs",
	"modules", "objects", "packed-refs", "rebase-apply", "rebase-merge", "refs", "reftable", "rr-cache", "sequencer",
	"shallow"}

// isOfGit reports whether git needs an entry of a git directory. All others are not shown: keys of git-crypt and
// git-annex, the index and the objects of each lane, and whatever people keep there.
func isOfGit(name string) bool {
	isOther := func(r rune) bool { return r != '_' && !unicode.IsUpper(r) }
	return slices.Contains(gitNames, name) || !strings.ContainsFunc(name, isOther) ||
		strings.HasPrefix(name, "sharedindex.") || strings.HasSuffix(name, ".lock") // the latter go at any time
}

// gitDir returns the rules for reading a git directory and those of its submodules. A file of settings with passwords
// is shown without them; where it cannot be, it is hidden. Ask for each command: the user may change the settings.
func (p *Place) gitDir(dir string) (r sandbox.Rules, err error) {
	for _, dir := range git.GitDirs(dir) {
		r = append(r, sandbox.Rule{Path: dir})
		entries, _ := os.ReadDir(dir) // one that cannot be read cannot be shown
		for _, e := range entries {
			x := sandbox.Rule{Path: filepath.Join(dir, e.Name()), Access: sandbox.Masked}
			switch {
			case slices.Contains(git.ConfigFiles, e.Name()):
				if x, err = p.gitConfig(x.Path); err != nil {
					return nil, err
				}
			case isOfGit(e.Name()), e.Type()&fs.ModeSymlink != 0: // what a link leads to has its own rules
				continue
			case e.IsDir():
				x.Access = sandbox.Empty
			}
			r = append(r, x)
		}
	}
	return r, nil
}

func (p *Place) gitConfig(path string) (sandbox.Rule, error) {
	data, err := durable.ReadRegular(path, git.MaxFile)
	switch {
	case err == nil && len(redact.InGitConfig(string(data))) == 0:
		return sandbox.Rule{Path: path}, nil
	case err != nil, p.CacheDir == "", !p.Method.HasNamespaces:
		return sandbox.Rule{Path: path, Access: sandbox.Masked}, nil //nolint:nilerr // Git says what is wrong with it.
	}
	name, err := p.keep(redact.CleanGitConfig(string(data)))
	return sandbox.Rule{Path: path, From: name, MustExist: true}, err
}

// keep returns a file that has a text which programs may read.
func (p *Place) keep(text string) (name string, err error) {
	sum := sha256.Sum256([]byte(text))
	name = filepath.Join(p.CacheDir, "sandbox", "config-"+hex.EncodeToString(sum[:]))
	if durable.IsMissing(name) {
		if err := durable.New(durable.OS{}).Replace(name, []byte(text)); err != nil { // others may write it, too
			return "", muster.Errorf(muster.Unavailable, "settings without passwords cannot be written: %w", err)
		}
	}
	return name, nil
}

// settings returns the rules for the user's settings of git and of other tools, without credentials. Git in a lane has
// them already; other repositories, such as a test makes, have not.
func (p *Place) settings() (r sandbox.Rules, err error) {
	if p.Home == "" || p.CacheDir == "" {
		return nil, nil
	}
	files := toolsettings.Find(p.Home, p.Environ)
	config := toolsettings.File{Text: []byte(p.Repo.UsersConfig()), Path: filepath.Join(p.Home, ".gitconfig")}
	files = append(files, toolsettings.Certificates(p.Environ)...)
	for _, f := range append(files, toolsettings.Direnv(p.Home, p.Environ), config) {
		kept, keepErr := p.keep(string(f.Text))
		err = cmp.Or(err, keepErr)
		r = append(r, sandbox.Rule{Path: kept}, sandbox.Rule{Path: f.Path, From: kept})
	}
	return r, err
}

// withSettings returns a program whose tools trust the settings of the checkout at dir.
func (p *Place) withSettings(s proc.Spec, dir string) proc.Spec {
	if p.Method != nil {
		s.Env = proc.WithVariables(s.Env, toolsettings.Environ(p.Home, s.Env, dir)...)
	}
	return s
}

// hidden returns the rules that take the state of the team and the lanes out of what is readable. Directories that the
// team has not needed yet are made: one that came while a command runs would be seen by it.
func (p *Place) hidden() (_ sandbox.Rules, err error) {
	all := p.stateDirs()
	for _, dir := range all[1:] {
		err = cmp.Or(err, durable.MakeDirBelow(string(p.State), dir))
	}
	return sandbox.Empty.Rules(all...), err
}

// stateDirs returns the directory of the lanes, then those of the team's state.
func (p *Place) stateDirs() []string {
	return []string{worktree.Home(p.Lanes), p.State.Team(), p.State.Tasks(), p.State.Transcripts(),
		p.State.Worktrees()}
}

// cache makes the directory of the caches that the members' programs in this repository share; "" where nothing is
// kept.
func (p *Place) cache() (string, error) {
	if p.CacheDir == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(p.Repo.CommonDir()))
	dir := filepath.Join(p.CacheDir, "sandbox", hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(filepath.Join(dir, xdgCache), 0o700); err != nil {
		return "", muster.Errorf(muster.Unavailable, "the caches of confined commands cannot be made: %w", err)
	}
	return dir, nil
}

// temporary returns the rule for the directory for temporary files that an environment names.
func temporary(env []string) sandbox.Rules {
	if dir := proc.Variable(env, "TMPDIR"); filepath.IsAbs(dir) {
		return sandbox.Write.Rules(dir)
	}
	return nil
}
