package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/localfiles"
	"muster/internal/proc"
)

// Receipt says what a check said of a tree. A green one is never earned twice: the check of the same tree, by the same
// command, after the same set-up and in the same environment, is known.
type Receipt struct {
	Key         string `json:"key"`            // of the fields that say what was checked, and how
	Name        string `json:"name,omitempty"` // of one of several checks
	Tree        string `json:"tree"`           // the id of the tree in git
	Command     string `json:"command"`
	Setup       string `json:"setup,omitempty"`
	Environment string `json:"environment"` // a hash of what the check saw of it
	// Paths are the patterns of the files on which it depends, and Files is the hash of those that the tree has: what
	// was said of it holds for each tree with the same files.
	Paths      []string  `json:"paths,omitempty"`
	Files      string    `json:"files,omitempty"`
	Green      bool      `json:"green"`
	How        string    `json:"how"` // "exit 1", "it did not end within 10m"
	Seconds    float64   `json:"seconds"`
	At         time.Time `json:"at"`
	Log        string    `json:"log"`                // it may be gone: logs are bounded
	Replaced   []string  `json:"replaced,omitempty"` // the variables that led into another checkout
	Unverified string    `json:"unverified,omitempty"`
	RanNone    string    `json:"ran_none,omitempty"` // the line that says that no test was found
	// FailedTests are all tests that have failed on the tree since the check was green there, and NamesKnown says that
	// its output has told all of them.
	FailedTests []string `json:"failed_tests,omitempty"`
	NamesKnown  bool     `json:"names_known,omitempty"`
	Stopped     bool     `json:"stopped,omitempty"` // after a failure there may be tests that did not run
	Flaky       bool     `json:"flaky,omitempty"`   // it was red before, on the same tree
}

// isProof reports whether the receipt proves its tree.
func (x Receipt) isProof() bool { return x.Green && x.Unverified == "" }

// Proves reports whether the receipt bears out that the check was green on its tree, or that it was red.
func (x Receipt) Proves(isGreen bool) bool { return x.isProof() == isGreen }

// key names what was checked and how: two checks with one key say the same.
func (x Receipt) key() string {
	sum := sha256.New()
	parts := []string{x.Tree, x.Command, x.Setup, x.Environment}
	if x.Name != "" {
		parts = append(parts, x.Name)
	}
	if x.Files != "" {
		parts[0] = "files " + x.Files
	}
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// volatile are the variables in which two processes of one user differ, and that say nothing of what a build makes.
var volatile = []string{
	"PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_TTY", "COLUMNS", "LINES", "TERM",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SHLVL", "XDG_SESSION_ID", "XDG_RUNTIME_DIR", "PORT",
}

// fingerprint is a hash of an environment, and of the programs in its PATH that the commands name.
func fingerprint(env []string, commands ...string) string {
	env = slices.Sorted(slices.Values(env))
	sum := sha256.New()
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(volatile, name) {
			fmt.Fprintf(sum, "%d %s\n", len(kv), kv)
		}
	}
	dirs := filepath.SplitList(proc.Variable(env, "PATH"))
	for _, word := range strings.Fields(strings.Join(commands, " ")) {
		for _, dir := range dirs {
			path, err := exec.LookPath(filepath.Join(dir, word))
			if err != nil || !filepath.IsAbs(path) {
				continue
			}
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintf(sum, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
			}
			break
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// The fingerprint has the variables of the user's environment, and not what a check makes of them: that follows from
// the variables and the tree, and names the slot, which is another one in another process. A program counts by its size
// and its time, so that a green receipt does not outlive another version of the compiler. What such a program loads by
// itself does not count.

// receiptFor returns the receipt that a check of the commit would get, and the one that there is already.
func (r *Runner) receiptFor(
	ctx context.Context, c muster.NamedCheck, commit string,
) (is Receipt, was *Receipt, err error) {
	if len(c.Paths) > 0 {
		if is.Files, err = HashFiles(ctx, r.options.Repo, commit, c.Paths); err != nil {
			return is, nil, err
		}
	}
	if r.options.Receipts == "" || c.Command == "" {
		return is, nil, nil
	}
	// No secret of the user's is on the disk. Two commands that differ in one only count as the same.
	hide, setup := r.options.Secrets.String, r.options.Check.Setup
	is.Name, is.Paths, is.Command, is.Setup = c.Name, c.Paths, hide(c.Command), hide(setup)
	environ := r.options.Environ
	if local := r.options.Local.Hash(); local != "" {
		environ = append(slices.Clip(environ), localfiles.Name+"="+local)
	}
	is.Environment = fingerprint(environ, c.Command, setup)
	if is.Tree, err = r.options.Repo.Tree(ctx, commit); err != nil {
		return is, nil, unavailable(ctx, "the commit cannot be read", err)
	}
	is.Key = is.key()
	x, err := readReceipt(filepath.Join(r.options.Receipts, is.Key+".json"))
	if err == nil && x.Files == is.Files && (is.Files != "" || x.Tree == is.Tree) {
		was = &x
	}
	return is, was, nil // one that cannot be read proves nothing, and the check runs
}

// The key of a check without a name has no name in it, so that the receipts of earlier versions stay of use. With names
// it counts: a check that is renamed runs again, and what proves a commit is found by the names in its message.

// Said returns what the checks have said of a commit, by their names. Nothing runs. Those of which nothing is kept are
// not there.
func (r *Runner) Said(ctx context.Context, commit string) (map[string]Receipt, error) {
	checks := r.options.Check.Named
	if len(checks) == 0 {
		checks = []muster.NamedCheck{{Command: r.options.Check.Command}}
	}
	said := map[string]Receipt{}
	for _, c := range checks {
		is, was, err := r.receiptFor(ctx, c, commit)
		if err != nil {
			return nil, err
		}
		if is.Files == NoFiles { // perhaps nobody has asked
			was = &Receipt{Name: c.Name, Green: true}
		}
		if was != nil {
			said[c.Name] = *was
		}
	}
	return said, nil
}

// A red receipt is kept for two reasons: it tells a test that fails by chance, when a check of the same tree is green
// later, and it bears out that a landing on a red base was red. It never keeps a check from running.

// keep writes the receipt of a check that has run. Nothing is kept of one that could not run.
func (r *Runner) keep(is Receipt, was *Receipt, res Result) error {
	if r.options.Receipts == "" || res.CannotRun || is.Command == "" {
		return nil
	}
	is.Green, is.How, is.Seconds, is.At, is.Log = res.Green, res.How, res.Seconds, time.Now().UTC(), res.Log
	is.Replaced, is.Unverified, is.RanNone = res.Replaced, res.Unverified, res.RanNone
	is.FailedTests, is.NamesKnown, is.Stopped = res.FailedTests, res.NamesKnown, res.Stopped
	// A test that fails by chance counts as one that fails, or the next tree on which it does would be blamed for it.
	if was != nil && is.NamesKnown && was.NamesKnown {
		is.FailedTests = slices.Compact(slices.Sorted(slices.Values(slices.Concat(was.FailedTests, is.FailedTests))))
	}
	is.Flaky = is.Green && was != nil && (!was.Green || was.Flaky)
	data, err := json.MarshalIndent(is, "", "  ")
	if err == nil {
		err = durable.New(durable.OS{}).Replace(filepath.Join(r.options.Receipts, is.Key+".json"), append(data, '\n'))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the receipt of the check cannot be written: %w", err)
	}
	return nil
}

// result returns the result that a green receipt stands for.
func (x Receipt) result() Result {
	return Result{Green: true, Cached: true, Command: x.Command, How: x.How, Seconds: x.Seconds, Replaced: x.Replaced,
		Log: x.Log, RanNone: x.RanNone}
}

// maxReceipt is how large the file of a receipt may be.
const maxReceipt = 4 << 20

// readReceipt reads a receipt. The error is Corrupt where it is not the one that its name says.
func readReceipt(path string) (x Receipt, err error) {
	data, err := durable.ReadRegular(path, maxReceipt)
	if err != nil {
		return x, err
	}
	if err = json.Unmarshal(data, &x); err == nil && (x.key() != x.Key || x.Key+".json" != filepath.Base(path)) {
		err = fmt.Errorf("it is not of the check that its name says")
	}
	if err != nil {
		return Receipt{}, muster.Errorf(muster.Corrupt, "the receipt %s cannot be read: %w", path, err)
	}
	return x, nil
}

// Receipts returns the receipts in a directory, the newest first. Those that cannot be read are left out.
func Receipts(dir string) []Receipt {
	var all []Receipt
	for _, path := range durable.Glob(dir, "*.json") {
		if x, err := readReceipt(path); err == nil {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b Receipt) int { return b.At.Compare(a.At) })
	return all
}
