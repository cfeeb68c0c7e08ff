package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHideEnvironment starts this program again, which hides its secrets and prints what /proc shows of it.
func TestHideEnvironment(t *testing.T) {
	const key = "sk-ant-0123456789abcdef"
	if os.Getenv("HIDE_KEY") != "" {
		HideEnvironment([]string{key, ""})
		// The process may always look at itself.
		environ, err1 := os.ReadFile("/proc/self/environ")
		arguments, err2 := os.ReadFile("/proc/self/cmdline")
		dumpable, err3 := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Printf("%v %v %v dumpable=%d own=%v\n%s\n%s\n", err1, err2, err3, dumpable, os.Getenv("HIDE_KEY") == key, environ, arguments)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHideEnvironment$", "-test.v", "-test.count=1", "http://h/?key="+key)
	cmd.Env = []string{"HIDE_KEY=" + key, "TWICE=" + key + key, "OTHER=stays"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	hidden := strings.Repeat("*", len(key))
	for _, want := range []string{"<nil> <nil> <nil> dumpable=0 own=true", "HIDE_KEY=" + hidden + "\x00TWICE=" + hidden + hidden,
		"OTHER=stays", "http://h/?key=" + hidden} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if strings.Contains(text, key) {
		t.Errorf("the key is in %q", text)
	}
}
