package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The profile has the rules of directories before those of what is below, with real paths, and what a path has of its
// own syntax is a part of the string. No test here runs it: macOS does, in findSeatbelt.
func TestProfile(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	quoted := filepath.Join(base, `a") (allow default) "\`)
	for _, dir := range []string{"home/tools", "home/lane", quoted[len(base):]} {
		check(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	check(t, os.Symlink(filepath.Join(base, "home"), filepath.Join(base, "link")))
	at := func(name string) string { return filepath.Join(base, name) }
	got, err := Rules{{Path: at("link/lane"), Access: Write}, {Path: at("home/tools")}, {Path: at("home"), Access: Empty},
		{Path: at("missing")}, {Path: at("elsewhere"), From: at("home")}, {Path: quoted}}.profile()
	check(t, err)
	_, rules, _ := strings.Cut(got, "\"/dev/tty\"))\n")
	want := strings.NewReplacer("BASE", base).Replace(`(allow file-read* (subpath "BASE/a\") (allow default) \"\\"))
(deny file-write* (subpath "BASE/a\") (allow default) \"\\"))
(deny file-read-data file-read-xattr file-write* (subpath "BASE/home"))
(allow file-read* file-write* (subpath "BASE/home/lane"))
(allow file-read* (subpath "BASE/home/tools"))
(deny file-write* (subpath "BASE/home/tools"))
`)
	if rules != want {
		t.Errorf("the rules are\n%s\nwant\n%s", rules, want)
	}
	if !strings.HasPrefix(got, "(version 1)\n(deny default)\n") || strings.Contains(got, "network") || strings.Contains(got, "missing") {
		t.Error(got)
	}
	if _, err := (Rules{{Path: at("none"), MustExist: true}}).profile(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what must exist and does not: %v", err)
	}
}
