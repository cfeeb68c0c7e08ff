// Package gittest makes real repositories for tests, on the machine of an ordinary developer: see Home.
package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Main is for a package whose tests run in parallel: Env once, for all of them.
func Main(m *testing.M) {
	home, err := os.MkdirTemp("", "home-")
	if err == nil {
		err = Home(home)
	}
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv(usersHome, os.Getenv("HOME"))
	for name, value := range env(home) {
		os.Setenv(name, value)
	}
	os.Setenv(prepared, "1")
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// prepared says that Main was here.
const prepared = "MUSTER_TEST_GIT_ENV"

// usersHome has the home of whoever runs the tests, after Main.
const usersHome = "MUSTER_TEST_HOME"

func env(home string) map[string]string {
	return map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "EMAIL": "",
		"MUSTER_SANDBOX_ENABLED": "false", // most tests are about something else; those of the sandbox ask for it
		"GIT_CONFIG_NOSYSTEM":    "1"}
}

// Env gives the test the home of an ordinary developer: see Home.
func Env(t testing.TB) {
	t.Helper()
	if os.Getenv(prepared) != "" {
		return
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	home := t.TempDir()
	if err := Home(home); err != nil {
		t.Fatal(err)
	}
	for name, value := range env(home) {
		t.Setenv(name, value)
	}
}

// Repo makes a repository on branch main with one commit of the files, and returns its root, whose path has a space.
func Repo(t testing.TB, files map[string]string) string {
	t.Helper()
	Env(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		dir = filepath.Join(dir, "my work", "repo")
		err = CopyRepo(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// CopyRepo is Repo for a directory of the caller, in the environment of Main or Env. Other files in dir stay, and are
// not tracked. git makes only the first repository with these files in a test process; others are copies of it.
func CopyRepo(dir string, files map[string]string) error {
	key := os.Getenv("GIT_DEFAULT_HASH") + fmt.Sprint(files) // maps are printed in the order of their keys
	templates.Lock()
	defer templates.Unlock()
	template, ok := templates.of[key]
	if !ok {
		var err error
		if template, err = makeTemplate(files); err != nil {
			return err
		}
		templates.of[key] = template
	}
	return template.write(dir)
}

// UsersEnviron returns the environment with the home of whoever runs the tests, where Go has its caches.
func UsersEnviron() []string {
	if home := os.Getenv(usersHome); home != "" {
		return append(os.Environ(), "HOME="+home)
	}
	return os.Environ()
}

// GoCache gives checks whose caches lie below root the build cache of Go of whoever runs the tests: each would compile
// the standard library otherwise.
func GoCache(t testing.TB, root string) {
	t.Helper()
	cmd := exec.Command("go", "env", "GOCACHE")
	cmd.Env = UsersEnviron()
	out, err := cmd.Output()
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err == nil {
		err = os.Symlink(strings.TrimSpace(string(out)), filepath.Join(root, "go-build"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Write puts files below dir.
func Write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
}

func write(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Unpack puts the files of a txtar archive into a new directory.
func Unpack(t testing.TB, archive string) (dir string) {
	t.Helper()
	all, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, f := range all.Files {
		Write(t, dir, map[string]string{f.Name: string(f.Data)})
	}
	return dir
}

// Read is the text of a file below dir, "" when it is not there.
func Read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// Git runs git as a user would, in dir, and returns what it prints, trimmed. It must succeed.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := Try(dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Git that may fail. In a lane or a scratch checkout it works as the commands of its member do.
func Try(dir string, args ...string) (string, error) {
	defer asMember(dir)()
	return User(dir, args...)
}

// User runs git as the user does, also in a lane.
func User(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// asMember lets the .git file of a lane lead to the git directory that commands of members have. The function that it
// returns puts it back.
func asMember(dir string) (restore func()) {
	link := filepath.Join(dir, ".git")
	was, err := os.ReadFile(link)
	admin, isLink := strings.CutPrefix(strings.TrimSpace(string(was)), "gitdir: ")
	common := filepath.Dir(filepath.Dir(admin))
	of := filepath.Join(common, "muster", "places", filepath.Base(filepath.Dir(dir)), filepath.Base(dir), "git")
	if _, statErr := os.Stat(of); err != nil || !isLink || statErr != nil {
		return func() {}
	}
	_ = os.WriteFile(link, []byte("gitdir: "+of+"\n"), 0o644)
	return func() {
		if now, err := os.ReadFile(link); err == nil && strings.HasSuffix(strings.TrimSpace(string(now)), of) {
			_ = os.WriteFile(link, was, 0o644)
		}
	}
}

// Checkout describes the user's checkout to the byte: HEAD, branch, index and every file that is not the team's.
// Compare it before and after.
func Checkout(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(Git(t, root, "rev-parse", "HEAD") + "\n")
	head, err := os.ReadFile(filepath.Join(root, ".git", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	b.Write(head)
	b.WriteString(Git(t, root, "ls-files", "-s") + "\n")
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch rel {
		case ".git", ".tasks", ".team", ".worktrees", ".transcripts":
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(rel + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + info.ModTime().String() + "\n" + string(data))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
