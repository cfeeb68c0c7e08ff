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
		HideEnvironment([]string{key, "", "me"})
		inherited, _ := exec.Command("/bin/sh", "-c", "read -r line <&3; printf %s \"$line\"").Output()
		fmt.Printf("inherited %q\n", inherited)
		// The process may always look at itself.
		environ, err1 := os.ReadFile("/proc/self/environ")
		arguments, err2 := os.ReadFile("/proc/self/cmdline")
		dumpable, err3 := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Printf("%v %v %v dumpable=%d own=%v\n%s\n%s\n", err1, err2, err3, dumpable, os.Getenv("HIDE_KEY") == key, environ, arguments)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHideEnvironment$", "-test.v", "-test.count=1", "http://h/?key="+key)
	cmd.Env = []string{"HIDE_KEY=" + key, "TWICE=" + key + key, "OTHER=stays"}
	cmd.Env = append(cmd.Env, "SHORT=me", "ME=menu")
	file, err := os.CreateTemp(t.TempDir(), "")
	check(t, err)
	defer file.Close()
	if _, err := file.WriteAt([]byte("of the file"), 0); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	hidden := strings.Repeat("*", len(key))
	for _, want := range []string{"<nil> <nil> <nil> dumpable=0 own=true", "HIDE_KEY=" + hidden + "\x00TWICE=" + hidden + hidden,
		"OTHER=stays", "SHORT=**\x00ME=menu\x00", `inherited ""`, "http://h/?key=" + hidden} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if strings.Contains(text, key) {
		t.Errorf("the key is in %q", text)
	}
}
