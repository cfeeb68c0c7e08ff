package proc_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/testing/wait"
)

// What a program starts has the lower priority of the program, also what it had started before.
func TestLowerPriority(t *testing.T) {
	l, err := proc.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	var out bytes.Buffer
	p, err := l.Start(t.Context(), proc.Spec{Argv: proc.Shell(`(touch began; while ! test -e go; do sleep 0.01; done; nice) & wait; nice`),
		Dir: dir, Env: os.Environ(), Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "what it starts", func() bool { _, err := os.Stat(dir + "/began"); return err == nil })
	proc.LowerPriority(p.PID())
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out.String()); len(got) != 2 || got[0] != "10" || got[1] != "10" {
		t.Errorf("%q", got)
	}
}
