package landing_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/journal"
)

// Where the check runs: outside the repository, clean, with a git of its own, and in an environment that points nowhere
// and has neither a key of a model nor a setting of muster's.
func TestWhereTheCheckRuns(t *testing.T) {
	t.Setenv("GOWORK", "/somewhere/go.work")
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "MUSTER_MODEL"} {
		t.Setenv(name, "secret")
	}
	out := t.TempDir()
	check := `set -e
pwd > ` + out + `/pwd; echo "$GOWORK" > ` + out + `/gowork; env | grep ^GIT_ | grep -v CONFIG > ` + out + `/git
test -z "$(git status --porcelain)"; test "$(git rev-parse --show-toplevel)" = "$(pwd)"
git log -1 --format=%s > ` + out + `/subject; git diff --name-only HEAD^ > ` + out + `/diff
test -f prepared; if env | grep secret; then exit 8; fi
echo generated > a.txt; if git diff --exit-code > /dev/null; then exit 9; fi
git checkout -q -b mess; git -c user.name=x -c user.email=x commit -q -am mess; git update-ref refs/heads/main HEAD`
	w := newWorld(t, check, map[string]string{"a.txt": "a\n", ".gitignore": "prepared\n"}, func(o *landing.Options) {
		o.Check.Setup = "touch prepared; ! env | grep secret"
	})
	main := w.git("rev-parse", "main")
	task, _ := w.task("Add b", "alice", map[string]string{"b.txt": "b\n"})
	equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptGreen)
	dir := strings.TrimSpace(gittest.Read(t, out, "pwd"))
	if strings.HasPrefix(dir, w.root) || !strings.HasSuffix(dir, "/repo") {
		t.Errorf("it ran in %s", dir)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	for file, want := range map[string]string{"gowork": "off", "subject": "Add b", "diff": "b.txt"} {
		equal(t, file, strings.TrimSpace(gittest.Read(t, out, file)), want)
	}
	if got := gittest.Read(t, out, "git"); !strings.HasPrefix(got, "GIT_CEILING_DIRECTORIES=") || strings.Count(got, "\n") != 1 {
		t.Errorf("environment: %s", got)
	}
	if w.git("rev-parse", "main") != main || w.git("branch", "--list", "mess") != "" || w.show("a.txt") != "a" {
		t.Error("the check's git wrote into the repository")
	}
	equal(t, "it is registered", strings.Contains(w.git("worktree", "list"), "muster-check"), false)
	log, err := os.ReadFile(w.log("task-1-1-1.log"))
	if err != nil || !strings.HasPrefix(string(log), "$ touch prepared; ! env | grep secret\n[exit 0") {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestATrackedWorkspaceIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `test -z "$GOWORK"`, map[string]string{"sub/go.work": "go 1.26\n"})
	task, _ := w.task("Add b", "alice", map[string]string{"b.txt": "b\n"})
	equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptGreen)
}

func TestWaysToBeRed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check landing.Check
		says  string
	}{
		"not found":      {landing.Check{Command: "test ! -f bad || no-such-command-here"}, "could not run on your work merged with muster/demo"},
		"not executable": {landing.Check{Command: "test ! -f bad || ./bad"}, "exit 126"},
		"setup":          {landing.Check{Command: "true", Setup: "test ! -f bad"}, "the setup failed"},
		"timeout":        {landing.Check{Command: "test ! -f bad || exec sleep 60", Timeout: 300 * time.Millisecond}, "it did not end within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) {
				o.Check.Command, o.Check.Setup = c.check.Command, c.check.Setup
			})
			if v, err := w.land.CheckBase(w.ctx()); err != nil || !v.Green {
				t.Fatalf("base: %+v, %v", v, err)
			}
			w.process("", func(o *landing.Options) { o.Check = c.check }) // which may have a timeout
			task, _ := w.task("Bad", "alice", map[string]string{"bad": "bad\n"})
			if v := w.back(task); !strings.HasPrefix(v.Text, red) || !strings.Contains(v.Text, c.says) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// The owner reads which tests have failed, wherever in the output that stands, before its last lines.
func TestWhatFailedIsFoundInTheWholeOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `test ! -f bad || { printf -- '--- FAIL: TestSum (0.00s)\n    sum_test.go:7: got 1, want 2\n'; seq 5000; exit 1; }`,
		map[string]string{"a.txt": "a\n"})
	task, _ := w.task("Bad", "alice", map[string]string{"bad": "bad\n"})
	v := w.back(task)
	lines := strings.Split(v.Text, "\n")
	if !strings.Contains(v.Text, "- TestSum (sum_test.go:7)\n    sum_test.go:7: got 1, want 2\n") || len(lines) > 50 ||
		!strings.HasPrefix(lines[len(lines)-1], "[exit 1 ") || lines[len(lines)-2] != "5000" {
		t.Errorf("%s", v.Text)
	}
	equal(t, "the checks say", len(w.said(journal.LandingChecked, "failed", "TestSum (sum_test.go:7)")), 2)
	equal(t, "the event says", fmt.Sprint(w.said(journal.TaskReturned, "failed", "")), "[TestSum (sum_test.go:7)]")
}

func TestCheckBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	if v, err := w.land.CheckBase(w.ctx()); err != nil || v.Green || w.state != "" {
		t.Errorf("no check: %+v, %v", v, err)
	}
	for _, c := range []struct {
		check, setup  string
		green, cannot bool
		state, output string
	}{
		{"cat a.txt", "", true, false, "ok", "a"},
		{"echo so red; exit 3", "", false, false, "red", "so red"},
		{"no-such-command-here", "", false, true, "", "no-such-command-here"},
		{"./a.txt", "", false, true, "", "126"},
		{"true", "echo no way; exit 1", false, true, "", "no way"},
	} {
		w.state = ""
		w.process(c.check, func(o *landing.Options) { o.Check.Setup = c.setup })
		v, err := w.land.CheckBase(w.ctx())
		if err != nil || v.Green != c.green || v.CannotRun != c.cannot || w.state != c.state || !strings.Contains(v.Output, c.output) || v.Log == "" {
			t.Errorf("%s: %+v, state %q, %v", c.check, v, w.state, err)
		}
	}
}

// The red-base rule: a target that was red stays landable until a landing turns it green; from then on red comes back.
func TestARedBase(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		w := newWorld(t, "test ! -f broken || exit 127; test -f fixed -a ! -f bad", map[string]string{"a.txt": "a\n"})
		if asked {
			w.must(fault(w.land.CheckBase(w.ctx())))
			equal(t, "the base", w.state, landing.BaseRed)
		}
		zero, _ := w.task("Zero", "dave", map[string]string{"broken": "0\n"})
		if v := w.back(zero); !strings.HasPrefix(v.Text, red) || !strings.Contains(v.Text, "could not run") {
			t.Errorf("%+v", v)
		}
		equal(t, "checks that could not run", len(w.said(journal.LandingChecked, "result", "cannot run")), 2)
		one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
		equal(t, "the receipt", w.lands(one).Task.Landed.Receipt, muster.ReceiptStillRed)
		if got := w.git("log", "-1", "--format=%(trailers:key=Muster-Check,valueonly)", target); !strings.HasPrefix(got, "still red, ") {
			t.Errorf("trailer %q", got)
		}
		two, _ := w.task("Two", "bob", map[string]string{"fixed": "2\n"})
		equal(t, "the receipt", w.lands(two).Task.Landed.Receipt, muster.ReceiptGreen)
		equal(t, "the state", w.state, landing.BaseGreen)
		three, _ := w.task("Three", "carol", map[string]string{"bad": "3\n"})
		if v := w.back(three); !strings.HasPrefix(v.Text, red) {
			t.Errorf("%+v", v)
		}
		said := w.said(journal.RunNote, "text", "the check is green on muster/demo now")
		equal(t, "times that it is green now", len(said), 1)
		// A base check that comes late does not take that back.
		w.process("false")
		if v, err := w.land.CheckBase(w.ctx()); err != nil || v.Green || w.state != landing.BaseGreen {
			t.Errorf("%+v, %v; the state is %s", v, err, w.state)
		}
	}
}

// A record of the base's check that cannot be read is not one that says nothing: the base is not checked again, and a
// red check decides nothing until it can be read.
func TestAnUnreadableStateOfTheBaseDecidesNothing(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	w := newWorld(t, "echo run >> "+runs+"; test -f good", map[string]string{"a.txt": "a\n"})
	w.state = "ok"
	task, _ := w.task("Add b", "alice", map[string]string{"b.txt": "b\n"})
	tip := w.git("rev-parse", target)
	w.unread = muster.Errorf(muster.Corrupt, "it is damaged")
	wants(t, fault(w.try(task)), muster.ErrCorrupt, "cannot be read")
	equal(t, "checks, of the merged tree only", strings.Count(gittest.Read(t, filepath.Dir(runs), "runs"), "run\n"), 1)
	if now := w.git("rev-parse", target); now != tip || w.state != "ok" {
		t.Errorf("the target is at %s, the state is %q", now, w.state)
	}
	w.unread = nil
	if v := w.back(task); !strings.HasPrefix(v.Text, red) {
		t.Errorf("%+v", v)
	}
}

// A landing has turned a red base green, and its process has died before it said so: red is no excuse any more.
func TestGreenThatACrashKeptUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "test -e one", map[string]string{"a.txt": "a\n"})
	w.state = landing.BaseRed
	w.landedUnrecorded(muster.ReceiptGreen + ", test -e one")
	breaks, _ := w.task("Breaks", "bob", map[string]string{"one": ""})
	w.back(breaks)
	equal(t, "the base is said to be", w.state, landing.BaseGreen)
	// A run that has begun there has asked the check itself, perhaps in another environment.
	w.state = landing.BaseRed
	r := &tipRecord{tips: []muster.Tip{{Commit: w.git("rev-parse", target)}}}
	w.process("test -e one", r.share)
	equal(t, "the receipt", w.lands(breaks).Task.Landed.Receipt, muster.ReceiptStillRed)
}

// People are told which test runs, and for whose work.
func TestTheTestThatRunsIsTold(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	check := "while [ ! -e " + told + " ]; do echo '=== RUN   TestOne'; sleep 0.05; done"
	w := newWorld(t, check, nil, func(o *landing.Options) {
		o.OnTest = func(task muster.TaskID, test string) {
			if task == 1 && test == "TestOne" {
				_ = os.WriteFile(told, nil, 0o600)
			}
		}
	})
	w.lands(w.many(1)[0])
}

// A check that says nothing of the merged tree is neither green nor red: its work lands unchecked, and people are told.
func TestACheckThatProvesNothing(t *testing.T) {
	t.Parallel()
	w, cache := newWorld(t, "", map[string]string{"lib/a": "a\n"}), t.TempDir()
	w.process("true", func(o *landing.Options) {
		o.Cache, o.Check.Setup = cache, "mkdir node_modules && ln -s '"+w.root+"/lib' node_modules/lib"
	})
	require.NoError(t, fault(w.land.CheckBase(w.ctx())))
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptUnchecked)
	equal(t, "notes", len(w.said(journal.RunNote, "text", "the check proves nothing: ")), 1)
	equal(t, "the base is said to be", w.state, "")
}

// A hook of the user decides after the check, on the merged tree. Work that it refuses comes back with its words. It does
// not run after a red check.
func TestAHookRefuses(t *testing.T) {
	t.Parallel()
	asked := 0
	w := newWorld(t, "test ! -e red", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) {
		o.Hook = func(_ context.Context, task muster.Task, dir string, _ []string) (string, error) {
			asked++
			if gittest.Read(t, dir, "a.txt") != "a\n" || gittest.Read(t, dir, "one") == "" || task.Subject != "One" {
				t.Errorf("the hook sees %s of task %q", dir, task.Subject)
			}
			if gittest.Read(t, dir, "one") == "bad\n" {
				return "No bad files, please.", nil
			}
			return "", nil
		}
	})
	w.state = landing.BaseGreen
	red, _ := w.task("Red", "bob", map[string]string{"red": "1\n"})
	w.back(red)
	one, lane := w.task("One", "alice", map[string]string{"one": "bad\n"})
	v := w.back(one)
	if !strings.HasPrefix(v.Text, "A hook of the user refused your work merged with muster/demo.") ||
		!strings.Contains(v.Text, "No bad files, please.") || v.Task.Owner != "alice" || asked != 1 {
		t.Errorf("asked %d times: %+v", asked, v)
	}
	w.write(lane, map[string]string{"one": "good\n"})
	equal(t, "the receipt", w.lands(one).Task.Landed.Receipt, muster.ReceiptGreen)
	equal(t, "times that it is asked", asked, 2)
	w.state = landing.BaseRed // where a red check keeps nothing from landing
	worse, _ := w.task("One", "carol", map[string]string{"red": "1\n", "one": "bad\n"})
	says(t, w.back(worse).Text, "A hook of the user refused your work", "No bad files, please.")
}

// checked is a world whose landings have to pass several checks.
func checked(t *testing.T, files map[string]string, checks ...muster.NamedCheck) *world {
	t.Helper()
	receipts := t.TempDir()
	return newWorld(t, "", files, func(o *landing.Options) {
		o.Check.Named, o.Receipts = checks, receipts
	})
}

// fails is a check that fails while the tree has a file.
func fails(name string) muster.NamedCheck {
	return muster.NamedCheck{Name: name, Command: "! test -e no-" + name}
}

// All required checks have to pass, and an advisory one decides nothing and counts against nobody.
func TestNamedChecksOfALanding(t *testing.T) {
	t.Parallel()
	style := fails("style")
	style.Advisory = true
	w := checked(t, map[string]string{"a.txt": "a\n"}, fails("unit"), fails("lint"), style)
	fine, _ := w.task("Fine", "alice", map[string]string{"b.txt": "b\n"})
	if v := w.lands(fine); v.Task.Landed.Receipt != muster.ReceiptGreen || v.Task.Landed.Check != "unit, lint" || v.Task.Landed.Advisory != "" {
		t.Errorf("%+v", v.Task.Landed)
	}
	equal(t, "trailer", w.git("log", "-1", "--format=%(trailers:key=Muster-Check,valueonly)", target), "ok, unit, lint")
	both, _ := w.task("Both", "bob", map[string]string{"no-unit": "1\n", "no-lint": "1\n"})
	v := w.back(both)
	says(t, v.Text, "unit: ! test -e no-unit; lint: ! test -e no-lint", "(unit: exit 1, lint: exit 1,", "== unit: ", "== lint: ")
	advisory, _ := w.task("Advisory", "carol", map[string]string{"no-style": "1\n"})
	if v := w.lands(advisory); v.Task.Rounds != 0 || v.Task.Landed.Receipt != muster.ReceiptGreen || v.Task.Landed.Advisory != "style" {
		t.Errorf("%+v", v.Task)
	}
	equal(t, "notes", len(w.said(journal.RunNote, "text", "the advisory check style is red")), 1)
}

// On a red base no check may become red that was green, unless it is advisory, and another one may stay red.
func TestNamedChecksOnARedBase(t *testing.T) {
	t.Parallel()
	style := fails("style")
	style.Advisory = true
	w := checked(t, map[string]string{"no-unit": "1\n"}, fails("unit"), fails("lint"), style)
	w.must(fault(w.land.CheckBase(w.ctx())))
	equal(t, "the base", w.state, landing.BaseRed)
	same, _ := w.task("Same", "alice", map[string]string{"no-style": "1\n"})
	equal(t, "the receipt", w.lands(same).Task.Landed.Receipt, muster.ReceiptStillRed)
	worse, _ := w.task("Worse", "bob", map[string]string{"no-lint": "1\n"})
	says(t, w.back(worse).Text, "more fails: lint.")
	// Not even where the other one is mended.
	swapped, _ := w.task("Swapped", "carol", map[string]string{"no-lint": "1\n", "no-unit": ""})
	says(t, w.back(swapped).Text, "more fails: lint.")
	mended, _ := w.task("Mended", "dave", map[string]string{"no-unit": ""})
	equal(t, "the receipt", w.lands(mended).Task.Landed.Receipt, muster.ReceiptGreen)
	equal(t, "the state", w.state, landing.BaseGreen)
}
