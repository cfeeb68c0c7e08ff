package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// Everything in a repository that can make git start a program, each leaving a trace: nothing of it may run.
func TestTheRepositoryRunsNothing(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a.txt": "1\n2\n3\n", ".gitattributes": "*.txt filter=trap diff=trap merge=trap\n"})
	traces := t.TempDir()
	trap := func(name string) string {
		path := filepath.Join(traces, name+".sh")
		script := "#!/bin/sh\ntouch " + filepath.Join(traces, "ran-"+name) + "\ncat 2>/dev/null\nexit 0\n"
		require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
		return path
	}
	set := func(key, value string) { gittest.Git(t, root, "config", key, value) }
	arm := func() {
		for _, key := range []string{"filter.trap.clean", "filter.trap.smudge", "filter.odd=n.ame.process", "merge.trap.driver",
			"diff.trap.command", "diff.trap.textconv", "diff.external", "core.fsmonitor", "core.editor", "core.pager", "gpg.program",
			"core.sshCommand"} {
			set(key, trap(key))
		}
		set("filter.trap.required", "true")
		set("commit.gpgSign", "true")
		set("remote.origin.url", "ssh://localhost/x")
		set("core.hooksPath", traces+"/hooks")
		require.NoError(t, os.MkdirAll(traces+"/hooks", 0o755))
		for _, h := range []string{"pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction", "commit-msg", "prepare-commit-msg", "post-index-change", "pre-merge-commit"} {
			require.NoError(t, os.Rename(trap(h), traces+"/hooks/"+h))
		}
		// An include that only a linked worktree sees.
		gittest.Write(t, traces, map[string]string{"inc": "[filter \"late\"]\n\tsmudge = " + trap("late") + "\n\tclean = " + trap("late") + "\n"})
		set("includeIf.gitdir:**/worktrees/**.path", traces+"/inc")
	}
	gittest.Write(t, root, map[string]string{"b.late": "b\n", ".git/info/attributes": "*.late filter=late\n*.odd filter=odd=n.ame\n", "c.odd": "c\n"})
	gittest.Git(t, root, "add", "-A")
	gittest.Git(t, root, "commit", "-q", "-m", "files")
	arm()
	ran := func() []string {
		got, _ := filepath.Glob(traces + "/ran-*")
		for i := range got {
			got[i] = strings.TrimPrefix(filepath.Base(got[i]), "ran-")
		}
		return got
	}
	// The traps are real: git without our care falls into them.
	gittest.Git(t, root, "worktree", "add", "-q", "--detach", root+"-trap")
	if got := ran(); len(got) < 3 {
		t.Fatalf("the traps do not work: only %v ran", got)
	}
	gittest.Git(t, root, "worktree", "remove", "--force", root+"-trap")
	for _, name := range ran() {
		os.Remove(traces + "/ran-" + name)
	}

	r := open(t, root)
	ctx := t.Context()
	head := require.Value(r.Head(ctx))(t)
	lane := root + "-lane"
	require.NoError(t, r.AddWorktree(ctx, lane, "", head))
	gittest.Write(t, lane, map[string]string{"a.txt": "1 lane\n2\n3\n", "b.late": "b2\n", "c.odd": "c2\n", "new.txt": "new\n"})
	p := require.Value(git.OpenPlace(r, lane, ""))(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := p.Run(ctx, args...)
		if err != nil {
			t.Errorf("git %v: %v", args, err)
		}
		return out
	}
	run("status")
	if got := run("diff"); !strings.Contains(got, "+1 lane") {
		t.Errorf("diff: %q", got)
	}
	future := time.Now().Add(time.Hour) // git must read these again to know whether they are as they were staged
	for _, name := range []string{"a.txt", "b.late"} {
		require.NoError(t, os.Chtimes(filepath.Join(lane, name), future, future))
	}
	for _, args := range []string{"add -A", "write-tree", "commit -q -m work", "log -p -1", "show HEAD"} {
		run(strings.Fields(args)...)
	}
	mine := strings.TrimSpace(run("rev-parse", "HEAD"))
	// A conflict in a file with a merge driver, without a checkout and in one.
	run("checkout", "-q", "--detach", head)
	gittest.Write(t, lane, map[string]string{"a.txt": "1 other\n2\n3\n"})
	run("add", "-A")
	run("commit", "-q", "-m", "other")
	other := strings.TrimSpace(run("rev-parse", "HEAD"))
	require.NoError(t, p.TakeObjects(ctx, []string{mine, other}, []string{head}))
	if _, conflicts, err := r.MergeTree(ctx, other, mine); err != nil || len(conflicts) != 1 {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
	if _, err := p.Run(ctx, "merge", "-q", "--no-edit", mine); err == nil {
		t.Error("the merge has no conflict")
	}
	require.NoError(t, r.RemoveWorktree(ctx, lane))
	if _, err := r.Run(ctx, root, "fetch", "origin"); err == nil {
		t.Error("something was fetched")
	}
	if got := ran(); len(got) != 0 {
		t.Errorf("ran: %v", got)
	}
}

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
	staged := func(r *git.Repo, lane, text string) string {
		t.Helper()
		if _, err := os.Lstat(lane); err != nil {
			require.NoError(t, r.AddWorktree(t.Context(), lane, "", "HEAD"))
		}
		p := require.Value(git.OpenPlace(r, lane, ""))(t)
		gittest.Write(t, lane, map[string]string{"a.up": text, "a.lo": text, "a.no": text})
		require.Value(p.Run(t.Context(), "add", "-A"))(t)
		all := ""
		for _, name := range []string{"a.up", "a.lo", "a.no"} {
			all += strings.TrimSpace(require.Value(p.Run(t.Context(), "show", ":"+name))(t))
		}
		return all
	}
	equal(t, "staged", staged(before, root+"-one", "bc\n"), "BCbcbc")
	equal(t, "staged", staged(trusting, root+"-two", "cd\n"), "CD23cd")
	// A process would count before the command that was read.
	gittest.Git(t, root, "config", "filter.up.process", "touch "+trace)
	equal(t, "staged", staged(before, root+"-one", "ef\n"), "EFefef")
	if _, err := os.Lstat(trace); err == nil {
		t.Error("a filter ran that was set after the repository was opened")
	}
}

// No setting that an agent writes makes git overlook a change.
func TestNoSettingHidesAChange(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n"})
	r := open(t, root)
	hidden := filepath.Join(t.TempDir(), "ignore")
	require.NoError(t, os.WriteFile(hidden, []byte("*\n"), 0o600))
	for key, value := range map[string]string{"core.excludesFile": hidden, "core.fileMode": "false", "core.ignoreCase": "true",
		"core.ignoreStat": "true", "core.symlinks": "false", "core.trustctime": "false", "core.checkStat": "minimal"} {
		gittest.Git(t, root, "config", key, value)
	}
	gittest.Write(t, root, map[string]string{"new": "n\n", "A": "A\n"})
	require.NoError(t, os.Chmod(filepath.Join(root, "a"), 0o755))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "link")))
	out, err := r.Run(t.Context(), root, "add", "-A")
	if err != nil {
		t.Fatal(out, err)
	}
	out, err = r.Run(t.Context(), root, "diff-tree", "-r", "HEAD", strings.TrimSpace(gittest.Git(t, root, "write-tree")))
	require.NoError(t, err)
	for _, want := range []string{"A\tA", "100755", "120000", "A\tnew"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
