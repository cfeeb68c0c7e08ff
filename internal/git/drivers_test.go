package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/git"
	"muster/internal/testing/gittest"
)

// A filter of the user's own config runs, and one of the repository's config does not before it is trusted. What an agent
// writes into either after the repository was opened counts for neither.
func TestWhichFiltersRun(t *testing.T) {
	root := gittest.Repo(t, map[string]string{".gitattributes": "*.up filter=up\n*.lo filter=lo\n*.no filter=no\n",
		"a.up": "a\n", "a.lo": "a\n", "a.no": "a\n"})
	home := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "config"))
	gittest.Git(t, root, "config", "--global", "filter.up.clean", "tr a-z A-Z")
	gittest.Git(t, root, "config", "--global", "filter.half.clean", "cat")
	gittest.Git(t, root, "config", "filter.lo.clean", "tr a-z 0-9")
	gittest.Git(t, root, "config", "filter.half.smudge", "cat")
	before, trusting := open(t, root), open(t, root)
	want := []string{"filter.half.clean = cat", "filter.half.smudge = cat", "filter.lo.clean = tr a-z 0-9"}
	if got := before.UntrustedDrivers(); !slices.Equal(got, want) {
		t.Errorf("untrusted: %q", got)
	}
	trusting.TrustDrivers()
	states := func(r *git.Repo) (all []git.FilterState) {
		for _, name := range []string{"up", "lo", "half", "no"} {
			all = append(all, r.Filter(name))
		}
		return all
	}
	runs, not, none := git.FilterRuns, git.FilterUntrusted, git.FilterMissing
	if got := states(before); !slices.Equal(got, []git.FilterState{runs, not, not, none}) {
		t.Errorf("states %v", got)
	}
	if got := states(trusting); !slices.Equal(got, []git.FilterState{runs, runs, runs, none}) || len(trusting.UntrustedDrivers()) > 0 {
		t.Errorf("states of the trusting one %v", got)
	}
	trace := filepath.Join(home, "ran")
	for _, scope := range []string{"--global", "--local"} {
		for _, name := range []string{"up", "lo", "no"} {
			gittest.Git(t, root, "config", scope, "filter."+name+".clean", "touch "+trace+"; cat")
		}
	}
	staged := func(r *git.Repo, text string) string {
		t.Helper()
		gittest.Write(t, root, map[string]string{"a.up": text, "a.lo": text, "a.no": text})
		if _, err := r.Run(t.Context(), root, "add", "-A"); err != nil {
			t.Fatal(err)
		}
		return gittest.Git(t, root, "show", ":a.up") + gittest.Git(t, root, "show", ":a.lo") + gittest.Git(t, root, "show", ":a.no")
	}
	equal(t, "staged", staged(before, "bc\n"), "BCbcbc")
	equal(t, "staged", staged(trusting, "cd\n"), "CD23cd")
	// A process would count before the command that was read.
	gittest.Git(t, root, "config", "filter.up.process", "touch "+trace)
	gittest.Write(t, root, map[string]string{"a.up": "e\n"})
	if _, err := before.Run(t.Context(), root, "add", "-A"); err == nil || !strings.Contains(err.Error(), "clean filter 'up' failed") {
		t.Errorf("staged without the filter: %v", err)
	}
	if _, err := os.Lstat(trace); err == nil {
		t.Error("a filter ran that was set after the repository was opened")
	}
}

// No setting that an agent writes makes git overlook a change.
func TestNoSettingHidesAChange(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n"})
	r := open(t, root)
	hidden := filepath.Join(t.TempDir(), "ignore")
	check(t, os.WriteFile(hidden, []byte("*\n"), 0o600))
	for key, value := range map[string]string{"core.excludesFile": hidden, "core.fileMode": "false", "core.ignoreCase": "true",
		"core.ignoreStat": "true", "core.symlinks": "false", "core.trustctime": "false", "core.checkStat": "minimal"} {
		gittest.Git(t, root, "config", key, value)
	}
	gittest.Write(t, root, map[string]string{"new": "n\n", "A": "A\n"})
	check(t, os.Chmod(filepath.Join(root, "a"), 0o755))
	check(t, os.Symlink("a", filepath.Join(root, "link")))
	out, err := r.Run(t.Context(), root, "add", "-A")
	if err != nil {
		t.Fatal(out, err)
	}
	out, err = r.Run(t.Context(), root, "diff-tree", "-r", "HEAD", strings.TrimSpace(gittest.Git(t, root, "write-tree")))
	check(t, err)
	for _, want := range []string{"A\tA", "100755", "120000", "A\tnew"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
