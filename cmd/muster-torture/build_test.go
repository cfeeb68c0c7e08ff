package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/faultinject"
	"muster/internal/testing/tier"
	"muster/internal/testing/torture"
)

// build builds a command with the given build tags and returns the path of the binary.
func build(t *testing.T, tags, command string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), command)
	out, err := exec.Command("go", "build", "-tags="+tags, "-o", binary, "muster/cmd/"+command).CombinedOutput()
	if err != nil {
		t.Fatalf("go build %s: %v\n%s", command, err, out)
	}
	return binary
}

// TestInstalledBinary checks that the program that people install has no failpoints: neither the environment variables
// nor the names of points are in it. The same search in a build with the tag must find each of them.
func TestInstalledBinary(t *testing.T) {
	tier.All(t) // it builds two programs
	installed, err := os.ReadFile(build(t, "", "muster"))
	if err != nil {
		t.Fatal(err)
	}
	withPoints, err := os.ReadFile(build(t, "failpoint", "muster-torture"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{faultinject.Variable, faultinject.NoteVariable}
	for _, p := range faultinject.Places() {
		switch prefix, _, _ := strings.Cut(p.Name, "."); prefix {
		case "landing", "teammate": // packages: the names of their functions look like points
		case "lane": // events have such names
		default:
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		if bytes.Contains(installed, []byte(name)) {
			t.Errorf("the installed binary contains %s", name)
		}
		if !bytes.Contains(withPoints, []byte(name)) {
			t.Errorf("the binary with failpoints does not contain %s", name)
		}
	}
}

// TestBuildWithoutFailpoints checks that muster-torture names the right command when it was built without the tag.
func TestBuildWithoutFailpoints(t *testing.T) {
	tier.All(t) // it builds a program
	out, err := exec.Command(build(t, "", "muster-torture"), "--minutes", "0").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		t.Errorf("it ends with %v, want exit code %d", err, exitUsage)
	}
	want := "muster-torture: this build has no failpoints, so start it with: " + torture.Command + "\n"
	if string(out) != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
}
