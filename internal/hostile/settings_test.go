package hostile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

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
