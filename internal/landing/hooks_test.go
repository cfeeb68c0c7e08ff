package landing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// at makes the landings log to a handler that calls f when a line with the text is logged for the first time.
func at(text string, f func()) func(*landing.Options) {
	return func(o *landing.Options) { o.Log = slog.New(&lineHandler{text: text, f: f}) }
}

// lineHandler is a handler for one goroutine.
type lineHandler struct {
	slog.Handler
	text string
	f    func()
	n    int // how many lines had the text
}

func (h *lineHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *lineHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.text {
		if h.n++; h.n == 1 && h.f != nil {
			h.f()
		}
	}
	return nil
}

// oddGit makes the nth git whose arguments match the shell's pattern run a line of shell first; 0 is each of them. It
// sets the PATH of the process. happened reports whether there was such a git.
func oddGit(t *testing.T, pattern string, nth int, line string) (happened func() bool) {
	t.Helper()
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	bin := t.TempDir()
	gittest.Write(t, bin, map[string]string{"git": fmt.Sprintf(`#!/bin/sh
case " $* " in %[2]s)
	printf x >> '%[1]s/calls'
	if [ %[3]d -eq 0 ] || [ "$(wc -c < '%[1]s/calls')" -eq %[3]d ]; then touch '%[1]s/happened'; %[4]s; fi;;
esac
exec '%[5]s' "$@"
`, bin, pattern, nth, line, real)})
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o755))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() bool {
		_, err := os.Stat(filepath.Join(bin, "happened"))
		return err == nil
	}
}

// unsyncable makes it impossible to sync the refs to disk; git itself does not look there.
func (w *world) unsyncable() (mend func()) {
	w.t.Helper()
	path := filepath.Join(w.root, ".git", "reftable")
	w.must(os.Symlink("reftable", path))
	return func() { w.must(os.Remove(path)) }
}

// edit changes the document of a task as another program does.
func (w *world) edit(id muster.TaskID, oldnew ...string) {
	w.t.Helper()
	table := w.store.Table(muster.TableTasks)
	doc, err := table.Get(w.ctx(), fmt.Sprint(id))
	w.must(err)
	data := string(doc.Data)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(data, oldnew[i]) {
			w.t.Fatalf("there is no %s in %s", oldnew[i], data)
		}
		data = strings.Replace(data, oldnew[i], oldnew[i+1], 1)
	}
	_, err = table.Put(w.ctx(), fmt.Sprint(id), []byte(data), doc.Rev)
	w.must(err)
}

// hint is what an error says beside its sentence.
func hint(err error) string {
	if e, ok := errors.AsType[*muster.Error](err); ok {
		return e.Hint
	}
	return ""
}

// kept is the content of a file in the archive refs that the hint of an error names, "" when none of them has it.
func (w *world) kept(err error, file string) string {
	w.t.Helper()
	for _, word := range strings.FieldsFunc(hint(err), func(r rune) bool { return r == ' ' || r == ',' }) {
		if strings.HasPrefix(word, "refs/muster/archive/") {
			if text, err := gittest.Try(w.root, "show", word+":"+file); err == nil {
				return text
			}
		}
	}
	return ""
}
