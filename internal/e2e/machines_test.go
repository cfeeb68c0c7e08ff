//go:build linux

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/internal/sandbox"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// work is a team of two with one task, in which a command commits what it could read and write of the machine.
const work = `
speakers:
  lead:
    - do:
        - task_create: {subject: work, description: Write seen.}
        - spawn_teammate: {name: alice, role: coder, prompt: You write files.}
    - do: [{wait: {}}]
      until: All done
    - say: It has landed.
scenes:
  - cue: 'Task #(?P<id>\d+): work\n'
    who: [coder]
    turns:
      - do:
          - bash:
              command: |
                { for name in .netrc .git-credentials .docker/config.json .npmrc .ssh/id_ed25519; do cat "$BASE/home/$name" "$HOME/$name"; done
                  cat ../../.git/config; env; git config --list; cat /proc/[0-9]*/environ | tr '\0' '\n'
                  echo x >"$BASE/outside"; mktemp; touch "$XDG_CACHE_HOME/x" && echo CACHED; } >seen 2>&1
                git add seen && git commit -qm "Write seen" && git tag -a v1 -m v1 && git revert --no-edit HEAD && git reset -q --hard HEAD~1 &&
                  git show HEAD~1:README >/dev/null && git log -1 --format="COMMITTED by %an" >>seen
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes what is seen."}}]
`

// A whole team works on each of the machines that people have, confined, and leaves there what it should and no more.
func TestMachines(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.Find(t.Context(), os.Environ()); err != nil {
		tier.Missing(t, err.Error())
	}
	for name, c := range map[string]struct {
		machine func(t testing.TB, files map[string]string) gittest.Machine
		author  string
	}{
		"ordinary":  {gittest.Ordinary, "Ann Tester <ann@example.com>"},
		"container": {gittest.Container, "Image <image@example.com>"},
		"runner":    {gittest.Runner, "Robot <robot@example.com>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := serve(t, work)
			w := worldOn(t, c.machine(t, map[string]string{"README": "a repository\n"}),
				"ANTHROPIC_API_KEY=key-"+gittest.Tokens, "ANTHROPIC_BASE_URL="+v.url)
			before := w.machineState()
			out := w.muster(0, "run", "--team", "t", "--check", `git show HEAD:README && ! cat "$BASE/home/.netrc"`, "work")
			w.has("stdout", out.stdout, "1 of 1 task landed on muster/t")
			w.has("stderr", out.stderr, "commands are confined")
			if after := w.machineState(); after != before {
				t.Errorf("the checkout is %s now, and was %s", after, before)
			}
			if s := w.git("--no-optional-locks", "status", "--porcelain"); s != "" {
				t.Errorf("the checkout has changes:\n%s", s)
			}
			if got := w.git("log", "--format=%an <%ae> by %cn", "HEAD..muster/t"); got != c.author+" by "+strings.SplitN(c.author, " <", 2)[0] {
				t.Errorf("the landed commits are of %q", got)
			}
			seen := w.git("show", "muster/t:seen")
			w.has("what the command saw", seen, "COMMITTED by "+strings.SplitN(c.author, " <", 2)[0], "CACHED")
			if strings.Contains(seen, gittest.Tokens) || strings.Contains(seen, "of-ann") {
				t.Errorf("a command can read what it may not:\n%s", seen)
			}
			if _, err := os.Stat(filepath.Join(w.base, "outside")); err == nil {
				t.Error("a command wrote outside of its lane")
			}
			w.leavesNothing()
		})
	}
}

// machineState describes what git knows of the checkout and where it stands, which a team does not change.
func (w *world) machineState() string {
	w.t.Helper()
	head := w.read(".git/HEAD")
	shallow, _ := os.ReadFile(filepath.Join(w.root, ".git", "shallow")) // most clones have none
	return head + w.git("rev-parse", "HEAD") + " " + string(shallow) + w.read(".git/config")
}

// leavesNothing checks that no file is left where all users keep temporary ones, and that each file in the repository
// belongs to whom the repository does.
func (w *world) leavesNothing() {
	w.t.Helper()
	owner := func(path string) uint32 {
		return require.Value(os.Lstat(path))(w.t).Sys().(*syscall.Stat_t).Uid
	}
	require.NoError(w.t, filepath.WalkDir(filepath.Join(w.base, "tmp"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			w.t.Errorf("left: %s", path)
		}
		return err
	}))
	require.NoError(w.t, filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && owner(path) != owner(w.root) {
			w.t.Errorf("%s belongs to %d", path, owner(path))
		}
		return err
	}))
}
