package cli

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/oauthtest"
)

// guarded starts a server that wants a login, and sets GUARDED to its URL.
func guarded(ts *testscript.TestScript, _ bool, _ []string) {
	s := oauthtest.New(ts.Value("t").(testing.TB))
	ts.Setenv("GUARDED", s.URL)
}

// login NAME runs muster mcp login, and opens the page that it prints, as a user does.
func login(ts *testscript.TestScript, _ bool, args []string) {
	errs, says := io.Pipe()
	go func() {
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, "http") {
				oauthtest.Browse(page)
			}
		}
	}()
	a := appOf(ts, "mcp", "login", args[0])
	a.Stderr = says
	defer says.Close()
	if code := a.Run(ts.Value("t").(*testing.T).Context()); code != exitDone {
		ts.Fatalf("exit code %d", code)
	}
}
