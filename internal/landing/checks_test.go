package landing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/journal"
)

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
	if said := w.said(journal.RunNote, "text", "the advisory check style is red"); len(said) != 1 {
		t.Errorf("it was said %d times", len(said))
	}
}

// On a red base no check may become red that was green, and another one may stay red.
func TestNamedChecksOnARedBase(t *testing.T) {
	t.Parallel()
	w := checked(t, map[string]string{"no-unit": "1\n"}, fails("unit"), fails("lint"))
	if v, err := w.land.CheckBase(w.ctx()); err != nil || v.Green || w.state != landing.BaseRed {
		t.Fatalf("%+v, %v", v, err)
	}
	same, _ := w.task("Same", "alice", map[string]string{"b.txt": "b\n"})
	equal(t, "the receipt", w.lands(same).Task.Landed.Receipt, muster.ReceiptStillRed)
	worse, _ := w.task("Worse", "bob", map[string]string{"no-lint": "1\n"})
	says(t, w.back(worse).Text, "more fails: lint.")
	// Not even where the other one is mended.
	swapped, _ := w.task("Swapped", "carol", map[string]string{"no-lint": "1\n", "no-unit": ""})
	says(t, w.back(swapped).Text, "more fails: lint.")
	mended, _ := w.task("Mended", "dave", map[string]string{"no-unit": ""})
	if v := w.lands(mended); v.Task.Landed.Receipt != muster.ReceiptGreen || w.state != landing.BaseGreen {
		t.Errorf("%+v, %q", v.Task.Landed, w.state)
	}
}

// A check that guards some files does not run for a stack that leaves them alone, runs for one that touches them, and
// finds whose work it was.
func TestAGuardedCheckOfAStack(t *testing.T) {
	t.Parallel()
	for _, touches := range []bool{false, true} {
		h, dir := newHold(t), t.TempDir()
		w := checked(t, map[string]string{"web/a": "1\n"}, muster.NamedCheck{Name: "all", Command: h.check("true")},
			muster.NamedCheck{Name: "web", Command: "echo run >> " + dir + "/runs; ! test -e web/bad", Paths: []string{"web/**"}})
		var tasks []muster.Task
		for i, files := range []map[string]string{{"c": "1\n"}, {"web/b": "1\n"}, {"web/bad": "1\n"}, {"d": "1\n"}} {
			if !touches {
				files = map[string]string{fmt.Sprint("file", i): "1\n"}
			}
			task, _ := w.task(fmt.Sprint("More ", i), muster.Name(fmt.Sprint("n", i)), files)
			tasks = append(tasks, task)
		}
		for id, v := range w.queued(h, tasks...) {
			isBad := touches && id == tasks[2].ID
			if (v.Task.Landed == nil) != isBad || isBad && !strings.Contains(v.Text, "web: ") {
				t.Errorf("task %d: %+v", id, v)
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, "runs"))
		if n := strings.Count(string(data), "run"); err != nil || !touches && n != 1 || touches && n < 4 {
			t.Errorf("it ran %d times, %v", n, err) // red, once more, and green without that work
		}
		if got := w.git("ls-tree", "--name-only", "-r", target); strings.Contains(got, "web/bad") || strings.Contains(got, "web/b") != touches {
			t.Errorf("%s", got)
		}
	}
}
