package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/gittest"
)

// Everything in a repository that can make git start a program, each leaving a trace: nothing of it may run.
func TestTheRepositoryRunsNothing(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a.txt": "1\n2\n3\n", ".gitattributes": "*.txt filter=trap diff=trap merge=trap\n"})
	traces := t.TempDir()
	trap := func(name string) string {
		path := filepath.Join(traces, name+".sh")
		script := "#!/bin/sh\ntouch " + filepath.Join(traces, "ran-"+name) + "\ncat 2>/dev/null\nexit 0\n"
		check(t, os.WriteFile(path, []byte(script), 0o755))
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
		check(t, os.MkdirAll(traces+"/hooks", 0o755))
		for _, h := range []string{"pre-commit", "post-commit", "post-checkout", "post-merge", "reference-transaction", "commit-msg", "prepare-commit-msg", "post-index-change", "pre-merge-commit"} {
			check(t, os.Rename(trap(h), traces+"/hooks/"+h))
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
	head, err := r.Head(ctx)
	check(t, err)
	lane := root + "-lane"
	check(t, r.AddWorktree(ctx, lane, "", head, nil))
	gittest.Write(t, lane, map[string]string{"a.txt": "1 lane\n2\n3\n", "b.late": "b2\n", "c.odd": "c2\n", "new.txt": "new\n"})
	run := func(args ...string) string {
		t.Helper()
		out, err := r.Run(ctx, lane, args...)
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
		check(t, os.Chtimes(filepath.Join(lane, name), future, future))
	}
	for _, args := range []string{"add -A", "write-tree", "commit -q -m work", "log -p -1", "show HEAD"} {
		run(strings.Fields(args)...)
	}
	mine, err := r.ResolveIn(ctx, lane, "HEAD")
	check(t, err)
	// A conflict in a file with a merge driver, without a checkout and in one.
	run("checkout", "-q", "--detach", head)
	gittest.Write(t, lane, map[string]string{"a.txt": "1 other\n2\n3\n"})
	run("add", "-A")
	run("commit", "-q", "-m", "other")
	other, _ := r.ResolveIn(ctx, lane, "HEAD")
	if _, conflicts, err := r.MergeTree(ctx, other, mine); err != nil || len(conflicts) != 1 {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
	if _, err := r.Run(ctx, lane, "merge", "-q", "--no-edit", mine); err == nil {
		t.Error("the merge has no conflict")
	}
	check(t, r.RemoveWorktree(ctx, lane))
	if _, err := r.Run(ctx, root, "fetch", "origin"); err == nil {
		t.Error("something was fetched")
	}
	if got := ran(); len(got) != 0 {
		t.Errorf("ran: %v", got)
	}
}
