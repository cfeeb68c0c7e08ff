package hostile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// State that muster did not make for this user on this machine is not used.
func TestStates(t *testing.T) {
	own := maps.Clone(recordCommands)
	maps.Copy(own, settingsCommands)
	runTable(t, "states", own)
}

// recordCommands are the commands of the scripts that change records.
var recordCommands = map[string]command{"edit": edit, "untouched": untouched, "tries": tries, "tips": tips}

// edit FILE PATH VALUE... sets values in a file of JSON, which it makes where there is none. PATH is the keys with slashes
// between them. A VALUE that is no JSON is a text; the value "-" removes the key, and "@FILE" is the line in a file.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	file, doc := ts.MkAbs(args[0]), map[string]any{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		ts.Check(err)
	}
	for i := 1; i+1 < len(args); i += 2 {
		keys := strings.Split(args[i], "/")
		at := doc
		for _, key := range keys[:len(keys)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		var value any = args[i+1]
		_ = json.Unmarshal([]byte(args[i+1]), &value)
		if from, ok := strings.CutPrefix(args[i+1], "@"); ok {
			value = strings.TrimSpace(ts.ReadFile(from))
		}
		if last := keys[len(keys)-1]; value == "-" {
			delete(at, last)
		} else {
			at[last] = value
		}
	}
	data, err = json.MarshalIndent(doc, "", "  ")
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, data, 0o600))
}

// untouched checks that the user's files, worktrees, branches and the lane "mine" are as they were.
func untouched(ts *testscript.TestScript, _ bool, _ []string) {
	work := ts.Getenv("WORK")
	for _, dir := range []string{"users", "plain", "r/.worktrees/feature", "r/.worktrees/plain"} {
		if text := ts.ReadFile(filepath.Join(work, dir, "precious")); text != "the user's\n" {
			ts.Fatalf("%s has %q", dir, text)
		}
	}
	for file, question := range map[string][]string{"refs": {"for-each-ref"}, "worktrees": {"worktree", "list"}} {
		ts.Check(ts.Exec("git", append([]string{"-C", filepath.Join(work, "r")}, question...)...))
		if now, was := ts.ReadFile("stdout"), ts.ReadFile(filepath.Join(work, file)); now != was {
			ts.Fatalf("%s were\n%s\nand are\n%s", file, was, now)
		}
	}
}

// tries PROGRAM ARGS... runs a program that may fail: what it leaves is what counts.
func tries(ts *testscript.TestScript, _ bool, args []string) {
	if err := ts.Exec(args[0], args[1:]...); err != nil && !strings.HasPrefix(err.Error(), "exit status ") {
		ts.Fatalf("%v", err)
	}
}

// tips checks that the branches precious, main and muster/stopped are where $WORK/tips has them.
func tips(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("git", "rev-parse", "precious", "main", "muster/stopped"))
	if now, was := ts.ReadFile("stdout"), ts.ReadFile(filepath.Join(ts.Getenv("WORK"), "tips")); now != was {
		ts.Fatalf("the branches were at\n%s\nand are at\n%s", was, now)
	}
}

// settingsCommands are what the scripts about settings say beside the shared commands.
var settingsCommands = map[string]command{"listen": listen, "substitute": substitute}

// listen NAME starts a server that answers nothing useful, and puts its address into the variable NAME. Each request
// that it gets is a line in the file NAME.requests, which exists from the beginning.
func listen(ts *testscript.TestScript, _ bool, args []string) {
	log := filepath.Join(ts.Getenv("WORK"), args[0]+".requests")
	ts.Check(os.WriteFile(log, nil, 0o600))
	var writing sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writing.Lock()
		defer writing.Unlock()
		f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, _ = fmt.Fprintln(f, r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
			_ = f.Close()
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// substitute FILE REGEXP TEXT replaces what matches in a file. It fails when nothing does.
func substitute(ts *testscript.TestScript, _ bool, args []string) {
	path, what := ts.MkAbs(args[0]), regexp.MustCompile(args[1])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if !what.Match(data) {
		ts.Fatalf("%s has no %s:\n%s", args[0], what, data)
	}
	ts.Check(os.WriteFile(path, what.ReplaceAllLiteral(data, []byte(args[2])), 0o600))
}
