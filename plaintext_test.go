package muster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestPlainText puts errors as the standard library makes them into words, within texts that name the file and not.
func TestPlainText(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, missing := os.Open(filepath.Join(dir, "none"))
	_, below := os.Stat(filepath.Join(file, "x"))
	renamed := os.Rename(filepath.Join(dir, "none"), filepath.Join(dir, "to"))
	_, program := exec.LookPath("no-such-program")
	exit := exec.Command("sh", "-c", "exit 3").Run()
	var number struct{ N int }
	typed := json.Unmarshal([]byte(`{"N":"x"}`), &number)
	_, atoi := strconv.Atoi("x1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken := net.Listen("tcp", l.Addr().String())
	custom := &fs.PathError{Op: "open", Path: "b", Err: errors.New("it is a pipe")}
	for want, err := range map[string]error{
		"cannot read " + dir + "/none: it does not exist":                   missing,
		"the script none cannot be read: it does not exist":                 fmt.Errorf("the script none cannot be read: %w", missing),
		"cannot read " + file + "/x: a part of the path is no directory":    below,
		"cannot rename a file to " + dir + "/to: it does not exist":         renamed,
		"git: the program no-such-program is not installed, or not in PATH": fmt.Errorf("git: %w", program),
		"tests: it ended with exit code 3":                                  fmt.Errorf("tests: %w", exit),
		"a: it is not JSON, at byte 1":                                      fmt.Errorf("a: %w", json.Unmarshal([]byte("x"), &number)),
		`a: "N" cannot be a string`:                                         fmt.Errorf("a: %w", typed),
		`"x1" is not a number`:                                              atoi,
		"listen tcp " + l.Addr().String() + ": the address is in use":       taken,
		"cannot read b: it is a pipe":                                       custom,
		"it took too long":                                                  context.DeadlineExceeded,
		"one; the script none cannot be read: it does not exist":            Errorf(Invalid, "one; %w", Errorf(NotFound, "the script none cannot be read: %w", missing)),
		"a sentence": errors.New("a sentence"),
		// A name that is only a part of another word is not named by it.
		"about bees: cannot read b: it is a pipe":                                      fmt.Errorf("about bees: %w", custom),
		"cannot read b: it is a pipe\ncannot read " + dir + "/none: it does not exist": errors.Join(custom, missing),
	} {
		if got := PlainText(err); got != want {
			t.Errorf("%q in plain words is %q, want %q", err, got, want)
		}
	}
	// What is made with Errorf has the plain words, and still its cause.
	if err := Errorf(NotFound, "no script: %w", missing); err.Message != "no script: cannot read "+dir+"/none: it does not exist" ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made: %q", err)
	}
}
