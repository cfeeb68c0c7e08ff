package check_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/check"
	"muster/internal/ports"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// named makes a Runner of several checks that keeps receipts.
func (w *world) named(receipts string, checks ...muster.NamedCheck) *check.Runner {
	return w.runner("", func(o *check.Options) {
		o.Receipts, o.AtOnce, o.Cache = receipts, 4, filepath.Join(receipts, "cache")
		o.Check.Named = checks
	})
}

// Checks run side by side: each of these two ends only when the other one has begun.
func TestChecksRunSideBySide(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, threeFiles), t.TempDir()
	meet := func(mine, other string) string {
		return "pwd > " + dir + "/" + mine + "; for i in $(seq 10000); do test -e " + dir + "/" + other +
			" && exit 0; sleep 0.01; done; exit 1"
	}
	res := w.head(w.named(dir, muster.NamedCheck{Name: "one", Command: meet("1", "2")},
		muster.NamedCheck{Name: "two", Command: meet("2", "1")}))
	if !res.Green || len(res.Checks) != 2 || res.Command != "one, two" || res.Cached {
		t.Errorf("%+v", res)
	}
	if one, two := gittest.Read(t, dir, "1"), gittest.Read(t, dir, "2"); one == two ||
		!strings.Contains(one, "slot-1") || !strings.Contains(two, "slot-2") {
		t.Errorf("they ran in %s and %s", one, two)
	}
	for _, x := range check.Receipts(dir) {
		if x.Name == "" || !x.Green {
			t.Errorf("%+v", x)
		}
	}
}

// advice says which advisory checks are red.
func advice(res check.Result) (text string) {
	for _, c := range res.Advice() {
		text += c.Name + " " + cmp.Or(c.Failed, c.How)
	}
	return text
}

// No more run at once than may.
func TestChecksAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, threeFiles), t.TempDir()
	alone := "mkdir " + dir + "/busy || exit 1; sleep 0.05; rmdir " + dir + "/busy"
	res := w.head(w.runner("", func(o *check.Options) {
		o.AtOnce = 1
		o.Check.Named = []muster.NamedCheck{{Name: "a", Command: alone}, {Name: "b", Command: alone}, {Name: "c", Command: alone}}
	}))
	if !res.Green {
		t.Errorf("%+v", res)
	}
}

// What several checks say together: only those that are required decide, and all that is wrong is told.
func TestWhatSeveralChecksSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeFiles)
	const fails = `printf -- '--- FAIL: TestA (0.00s)\n    a_test.go:3: no\nFAIL\nFAIL\tm\t0.1s\n'; exit 1`
	for name, c := range map[string]struct {
		checks        []muster.NamedCheck
		green, cannot bool
		how, failed   string
		output        []string
		tests         []string
		advice        string
	}{
		"all green": {checks: []muster.NamedCheck{{Name: "a", Command: "true"}, {Name: "b", Command: "true"}}, green: true, how: "exit 0"},
		"one red": {checks: []muster.NamedCheck{{Name: "a", Command: "true"}, {Name: "b", Command: fails}}, how: "exit 1",
			failed: "b: TestA (a_test.go:3)", output: []string{"== b: printf", "- TestA (a_test.go:3)"}, tests: []string{"m.TestA"}},
		"two red": {checks: []muster.NamedCheck{{Name: "a", Command: "echo so; exit 3"}, {Name: "b", Command: fails}}, how: "a: exit 3, b: exit 1",
			failed: "a: exit 3; b: TestA (a_test.go:3)", output: []string{"== a: echo so; exit 3 (exit 3,", "so\n", "== b:"}, tests: []string{"m.TestA"}},
		"advisory": {checks: []muster.NamedCheck{{Name: "a", Command: "true"}, {Name: "b", Command: fails, Advisory: true}}, green: true, how: "exit 0",
			advice: "b TestA (a_test.go:3)"},
		"an advisory one that cannot run": {checks: []muster.NamedCheck{{Name: "a", Command: "true"}, {Name: "b", Command: "no-such-command-here", Advisory: true}},
			green: true, how: "exit 0", advice: "b exit 127: the command was not found"},
		"cannot run": {checks: []muster.NamedCheck{{Name: "a", Command: "true"}, {Name: "b", Command: "no-such-command-here"}}, cannot: true,
			how: "exit 127: the command was not found", failed: "b: exit 127: the command was not found"},
		"a timeout of its own": {checks: []muster.NamedCheck{{Name: "a", Command: "exec sleep 60", Timeout: 0.2}, {Name: "b", Command: "true"}},
			how: "it did not end within 200ms", failed: "a: it did not end within 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			res := w.head(w.named(t.TempDir(), c.checks...))
			if res.Green != c.green || res.CannotRun != c.cannot || res.How != c.how || res.Failed != c.failed ||
				!slices.Equal(res.FailedTests, c.tests) || advice(res) != c.advice {
				t.Errorf("%+v\n%q", res, advice(res))
			}
			for _, text := range c.output {
				if !strings.Contains(res.Output, text) {
					t.Errorf("%q is not in %s", text, res.Output)
				}
			}
		})
	}
}

// A check that depends on some files only runs when one of them has changed.
func TestAGuardedCheck(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, map[string]string{"web/app.js": "1\n", "web/sub/b.js": "1\n", "api/main.go": "1\n", ".gitignore": ".team\n"}), t.TempDir()
	r := w.named(dir, muster.NamedCheck{Name: "web", Command: "echo run >> " + dir + "/web", Paths: []string{"web"}},
		muster.NamedCheck{Name: "all", Command: "echo run >> " + dir + "/all"},
		muster.NamedCheck{Name: "none", Command: "exit 1", Paths: []string{"no/**", "*.rs"}})
	runs := func(name string) int {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.Count(string(data), "run")
	}
	for i, c := range []struct {
		change   func()
		web, all int
	}{
		{func() {}, 1, 1},
		{func() {}, 1, 1},
		{func() { gittest.Write(t, w.root, map[string]string{"api/main.go": "2\n"}) }, 1, 2},
		{func() { gittest.Write(t, w.root, map[string]string{"web/sub/b.js": "2\n"}) }, 2, 3},
		{func() { gittest.Write(t, w.root, map[string]string{"web/sub/b.js": "1\n", "website": "1\n"}) }, 2, 4}, // as it was
		{func() { w.git("mv", "web/app.js", "web/main.js") }, 3, 5},
		{func() { w.git("rm", "-qf", "web/main.js") }, 4, 6},
		{func() { w.git("update-index", "--chmod=+x", "web/sub/b.js") }, 5, 7},
	} {
		c.change()
		if w.git("add", "."); i < 7 {
			w.git("commit", "-q", "--allow-empty", "-m", "x")
		} else {
			w.git("update-index", "--chmod=+x", "web/sub/b.js")
			w.git("commit", "-q", "-m", "x")
		}
		res := w.head(r)
		if !res.Green || runs("web") != c.web || runs("all") != c.all || res.Checks[2].How != check.NoFiles {
			t.Errorf("%d: %+v, web ran %d times, all %d", i, res, runs("web"), runs("all"))
		}
	}
}

// Receipts of one check prove nothing for another one, nor with other paths.
func TestReceiptsOfNamedChecks(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, map[string]string{"web/a": "1\n", "b": "1\n"}), t.TempDir()
	one := muster.NamedCheck{Name: "one", Command: "true"}
	for i, c := range []struct {
		check  muster.NamedCheck
		cached bool
	}{
		{one, false},
		{one, true},
		{muster.NamedCheck{Name: "two", Command: "true"}, false},
		{muster.NamedCheck{Name: "one", Command: "true", Paths: []string{"web/**"}}, false},
		{muster.NamedCheck{Name: "one", Command: "true", Paths: []string{"web/**"}}, true},
		{muster.NamedCheck{Name: "one", Command: "true", Paths: []string{"b"}}, false},
		{muster.NamedCheck{Name: "one", Command: "true #"}, false},
	} {
		if res := w.head(w.named(dir, c.check)); !res.Green || res.Cached != c.cached {
			t.Errorf("%d: %+v", i, res)
		}
	}
	// A receipt under the name of another one is not read.
	all := check.Receipts(dir)
	require.NoError(t, os.Rename(filepath.Join(dir, all[0].Key+".json"), filepath.Join(dir, all[1].Key+".json")))
	if got := check.Receipts(dir); len(got) != len(all)-2 {
		t.Errorf("%d receipts of %d", len(got), len(all))
	}
}

// What decides last sees what all the checks say together, once, and the files.
func TestLastAfterSeveralChecks(t *testing.T) {
	t.Parallel()
	w, asked := newWorld(t, threeFiles), 0
	for _, green := range []bool{true, false} {
		command := map[bool]string{true: "true", false: "false"}[green]
		r := w.named(t.TempDir(), muster.NamedCheck{Name: "a", Command: "true"}, muster.NamedCheck{Name: "b", Command: command})
		res, err := r.Run(t.Context(), check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"},
			func(_ context.Context, dir string, _ []string, res *check.Result, _ io.Writer) error {
				if asked++; res.Green != green || gittest.Read(t, dir, "a.txt") != "a\n" {
					t.Errorf("%+v", res)
				}
				if green {
					*res = check.Result{Refused: true, How: "refused"}
				}
				return nil
			})
		if err != nil || res.Refused != green || res.Green || !green && res.Failed != "b: exit 1" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// Two checks at once have ports of their own, in slots and in temporary directories, and a slot has the same again.
func TestChecksHavePorts(t *testing.T) {
	for _, hasSlots := range []bool{true, false} {
		w := newWorld(t, map[string]string{"a": "a"})
		cache, said := t.TempDir(), t.TempDir()
		run := func(name, rest string) []string {
			r := w.runner(`echo $PORT $MUSTER_PORT_1 $MUSTER_PORT_2 > `+filepath.Join(said, name)+`; `+rest, func(o *check.Options) {
				if o.Ports, o.PortCount = ports.Open(cache), 2; hasSlots {
					o.Cache = cache + "/checks"
				}
			})
			if res := w.head(r); !res.Green {
				t.Errorf("%s: %s\n%s", name, res.How, res.Output)
			}
			text := require.Value(os.ReadFile(filepath.Join(said, name)))(t)
			return strings.Fields(string(text))
		}
		var first, second []string
		var group sync.WaitGroup
		// Each waits for the other.
		group.Go(func() { first = run("first", "until test -s "+said+"/second; do sleep 0.01; done") })
		group.Go(func() { second = run("second", "until test -s "+said+"/first; do sleep 0.01; done") })
		group.Wait()
		if len(first) != 3 || first[0] != first[1] || len(second) != 3 || first[1] == second[1] || first[2] == second[2] {
			t.Errorf("two checks at once have %v and %v", first, second)
		}
		again := run("again", "true")
		if hasSlots && again[0] != first[0] && again[0] != second[0] {
			t.Errorf("the next check has %v, after %v and %v", again, first, second)
		}
	}
}
