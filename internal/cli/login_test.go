package cli

import (
	"bufio"
	"bytes"
	"os/exec"
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
	c := exec.Command("muster", "mcp", "login", args[0])
	c.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GORACE"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	var out bytes.Buffer
	c.Stdout = &out
	errs, err := c.StderrPipe()
	ts.Check(err)
	ts.Check(c.Start())
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, "http") {
			oauthtest.Browse(page)
		}
	}
	if err := c.Wait(); err != nil || out.String() != "you are logged in at "+args[0]+"\n" {
		ts.Fatalf("%v: %s", err, out.String())
	}
}
