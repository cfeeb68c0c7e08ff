package setup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/proc"
)

// Store keeps the results of one repository's set-up. It is safe for concurrent use, also by several processes: an
// entry is complete when it gets its name, and is never changed after that.
type Store struct {
	repo *git.Repo
	root string // of the entries of all repositories
	dir  string
	log  *slog.Logger
}

// Open returns the store of a repository in the user's cache. It makes nothing. It is nil, which keeps nothing, where
// the cache lies in the repository: a command of a member, or git, could take what is kept for work.
func Open(repo *git.Repo, cache string, log *slog.Logger) *Store {
	if cache == "" {
		return nil
	}
	if rel, err := filepath.Rel(repo.Root(), cache); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	id := sha256.Sum256([]byte(repo.Root()))
	root := filepath.Join(cache, entriesDir)
	return &Store{repo: repo, root: root, dir: filepath.Join(root, hex.EncodeToString(id[:8])), log: log}
}

// Job is a set-up of a checkout.
type Job struct {
	Dir      string // the checkout, which has the files of Commit and nothing that is not ignored
	Commit   string
	Command  string   // the set-up
	Patterns []string // of the files on which it depends besides those that are known
	Environ  []string // of the user, as the command sees it
	Local    string   // a hash of what the checkout has beside the files of Commit; "" is nothing
	// Launch gives what starts checks. What it starts for a Store is confined where it is a FileLauncher.
	Launch func() (proc.Launcher, error)
	// Run runs the command. It reports whether that was well.
	Run func(context.Context) (ok bool, err error)
}

// Outcome is how a checkout was set up.
type Outcome struct {
	Reused  bool    // the result was kept, and was put into the checkout
	OK      bool    // it is set up
	Note    string  // why the result is not kept, as a sentence; "": it is
	Seconds float64 // how long putting or keeping it took
}

// Prepare sets a checkout up: by the kept result if there is one, else by running the command, whose result is then
// kept. What cannot be kept or put is no error: the command is run. An error is that of Job.Run.
func (s *Store) Prepare(ctx context.Context, j Job) (o Outcome, err error) {
	if s == nil {
		o.OK, err = j.Run(ctx)
		return o, err
	}
	key, errKey := s.key(ctx, j)
	if errKey == nil {
		began := time.Now()
		if e, ok := s.find(key, j.Dir); ok {
			errPut := j.put(ctx, e, e.Roots)
			if errPut == nil {
				return Outcome{Reused: true, OK: true, Seconds: time.Since(began).Seconds()}, nil
			}
			if !errors.Is(errPut, errOccupied) && ctx.Err() == nil {
				errPut = errors.Join(errPut, e.Remove()) // what is kept now is whole
			}
			s.warn(ctx, "putting a kept set-up into a checkout", errPut)
		}
	}
	if o.OK, err = j.Run(ctx); err != nil || !o.OK || errKey != nil {
		return o, errors.Join(err)
	}
	// The result is kept before the check runs, which may write into it. A failure costs time at the next check and
	// nothing else, so it stops nobody.
	began := time.Now()
	if err := s.keep(ctx, j, key); err != nil {
		o.Note = "the result of the set-up is not kept: " + err.Error()
	}
	o.Seconds = time.Since(began).Seconds()
	return o, nil
}

// key returns the name of the result of a set-up: a hash of all on which that depends. It is the same for all
// checkouts.
func (s *Store) key(ctx context.Context, j Job) (string, error) {
	t, err := ReadTree(ctx, s.repo, j.Commit)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "set-up 2\x00%s\x00%s\x00%s\x00", j.Command, runtime.GOOS, runtime.GOARCH)
	files, isWhole := detect.Inputs(t.Detectable(ctx), j.Command, j.Patterns)
	isInput := map[string]bool{}
	for _, file := range files {
		isInput[file] = true
	}
	for _, f := range t.Files {
		if isWhole || isInput[f.Path] {
			fmt.Fprintf(h, "file %s %s %s\x00", f.Mode, f.ID, f.Path)
		}
	}
	if j.Local != "" {
		fmt.Fprintf(h, "local %s\x00", j.Local)
	}
	for _, line := range append(toolStamps(j), relevantVariables(j.Environ)...) {
		fmt.Fprintf(h, "%s\x00", line)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// toolStamps returns what tells versions of the programs that a command names, and of what runs those: their files, as
// they are found in PATH. Asking each for its version would cost more than the whole preparation.
func toolStamps(j Job) (stamps []string) {
	path := ""
	for _, v := range j.Environ {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	// What runs the programs counts too: a new node makes another node_modules where something is compiled.
	words := append(strings.FieldsFunc(j.Command, func(c rune) bool { return strings.ContainsRune(" \t\n;&|()", c) }),
		"node", "python3", "cc")
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if strings.ContainsAny(word, `/\=$'"`) || strings.HasPrefix(word, "-") {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, word)
			if _, err := exec.LookPath(file); err != nil || !filepath.IsAbs(dir) {
				continue
			}
			if real, err := filepath.EvalSymlinks(file); err == nil {
				if info, err := os.Stat(real); err == nil {
					stamps = append(stamps, fmt.Sprintf("tool %s %s %d %d",
						word, real, info.Size(), info.ModTime().UnixNano()))
				}
			}
			break
		}
	}
	return stamps
}

// relevantPrefixes begin the names of variables that installers read.
var relevantPrefixes = []string{"NODE_", "NPM_CONFIG_", "npm_config_", "PNPM_", "YARN_", "BUN_", "COREPACK_", "PIP_",
	"UV_", "POETRY_", "PDM_", "PYTHON", "PYENV_", "CARGO_", "RUST", "GO", "CGO_", "BUNDLE_", "GEM_", "COMPOSER_",
	"DOTNET_", "NUGET_", "CC=", "CXX=", "CFLAGS=", "CXXFLAGS=", "LDFLAGS=", "CI="}

// relevantVariables returns the variables on which the result of an installer may depend, in order.
func relevantVariables(environ []string) (found []string) {
	for _, v := range environ {
		if slices.ContainsFunc(relevantPrefixes, func(p string) bool { return strings.HasPrefix(v, p) }) {
			found = append(found, v)
		}
	}
	slices.Sort(found)
	return found
}

// keep copies what the set-up has made into the store.
func (s *Store) keep(ctx context.Context, j Job, key string) error {
	roots, err := j.made(ctx)
	if err != nil || len(roots) == 0 {
		return err
	}
	temp := filepath.Join(s.dir, temporaryPrefix+strings.ToLower(rand.Text()))
	defer func() { _ = durable.RemoveAll(temp) }() // nothing is there after it has got its name
	e := Entry{Command: j.Command, Repo: s.repo.Root(), Made: time.Now().UTC(), Roots: roots, dir: temp}
	if err := os.MkdirAll(e.content(), 0o700); err != nil {
		return err
	}
	isBound, err := j.keep(ctx, e.content(), &e)
	if err != nil {
		return err
	}
	if isBound {
		// The checkouts in the user's cache have the same paths again and again, and no others have.
		if rel, err := filepath.Rel(filepath.Dir(s.root), j.Dir); err != nil || !filepath.IsLocal(rel) {
			return errors.New("it works at its own path only, as a virtual environment does")
		}
		e.Path, key = j.Dir, boundKey(key, j.Dir)
	}
	about, err := json.Marshal(e)
	if err == nil {
		err = durable.New(durable.OS{}).Replace(filepath.Join(temp, entryFile), about)
	}
	if err != nil {
		return err
	}
	// All is on the disk before the entry gets its name, so that a crash leaves a whole one or none.
	if err := os.Rename(temp, filepath.Join(s.dir, key)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // ErrExist: another process was faster
	}
	return tidy(s.root, time.Now())
}

// boundKey is the name of a result that works at one path only.
func boundKey(key, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return key + "-" + hex.EncodeToString(sum[:8])
}

// warn says what has gone wrong and stops nobody.
func (s *Store) warn(ctx context.Context, what string, err error) {
	if s.log != nil && err != nil {
		s.log.WarnContext(ctx, what, "err", err)
	}
}
