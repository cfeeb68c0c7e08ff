package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	ForwardMain()
	os.Exit(m.Run())
}

// find returns the method that works here.
func find(t testing.TB) (Method, proc.Launcher) {
	t.Helper()
	l, err := proc.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	m, err := Find(t.Context(), os.Environ())
	if err != nil {
		tier.Missing(t, err.Error())
	}
	return m, l
}

// findNamespaces is find for what Landlock cannot do.
func findNamespaces(t testing.TB) (Method, proc.Launcher) {
	t.Helper()
	m, l := find(t)
	if !m.HasNamespaces() {
		tier.Missing(t, "bubblewrap does not work")
	}
	return m, l
}

// write makes files with a text for each name below a directory.
func write(t testing.TB, dir string, text func(name string) string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text(name)), 0o600))
	}
}

// run runs a shell command with the rules, and returns what it prints.
func run(t testing.TB, m Method, l proc.Launcher, r Rules, command string) string {
	t.Helper()
	var out bytes.Buffer
	s := proc.Spec{Argv: []string{"/bin/sh", "-c", command}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Out: &out}
	p, err := m.Start(t.Context(), l, s, r)
	if err == nil {
		_, err = p.Wait()
	}
	require.NoError(t, err)
	return out.String()
}

// A rule for a path counts more than one for a directory above it, in whatever order the two are given.
func TestRulesBelowOthers(t *testing.T) {
	m, l := findNamespaces(t)
	base := t.TempDir()
	write(t, base, filepath.Base, "read/a", "read/hidden/b", "read/hidden/shown/c", "read/write/d", "read/write/kept/e", "other/f")
	at := func(name string) string { return filepath.Join(base, name) }
	rules := Rules{{Path: at("read")}, {Path: at("read/hidden"), Access: Empty}, {Path: at("read/hidden/shown")},
		{Path: at("read/write"), Access: Write}, {Path: at("read/write/kept")}, {Path: at("read/a"), Access: Masked},
		{Path: at("missing")}, {Path: at("elsewhere"), From: at("other")}}
	command := `cd ` + base + `; find . -type f | sort | while read f; do echo "$f=$(cat $f 2>/dev/null)"; done
for d in read read/hidden read/write read/write/kept read/hidden/shown elsewhere; do (echo x > $d/new) 2>/dev/null && echo wrote $d; done`
	want := strings.Join([]string{"./elsewhere/f=f", "./read/a=", "./read/hidden/shown/c=c", "./read/write/d=d",
		"./read/write/kept/e=e", "wrote read/hidden", "wrote read/write", ""}, "\n")
	for range len(rules) {
		if got := run(t, m, l, append(System(), rules...), command); got != want {
			t.Errorf("%v:\n%s", rules, got)
		}
		_ = os.Remove(at("read/write/new"))
		rules = append(slices.Clone(rules[1:]), rules[0])
	}
	if _, err := os.Lstat(at("read/hidden/new")); err == nil {
		t.Error("what was written to an empty directory is there")
	}
	if got := run(t, m, l, append(System(), Rule{Path: at("none"), MustExist: true}), "echo ran"); !strings.Contains(got, "none") || strings.Contains(got, "ran\n") {
		t.Errorf("without what must exist: %q", got)
	}
}

// Of two rules for one path the later counts.
func TestTheLaterRuleCounts(t *testing.T) {
	got := Rules{{Path: "/a", Access: Write}, {Path: "/a/b"}, {Path: "/a-b"}, {Path: "/a/"}}.sorted()
	want := Rules{{Path: "/a"}, {Path: "/a/b"}, {Path: "/a-b"}}
	if !slices.Equal(got, want) {
		t.Errorf("sorted: %v", got)
	}
}

// A program has namespaces and no capability of its own, can make no more of them, and writes neither to the root nor to
// the settings of the kernel.
func TestAProgramIsAlone(t *testing.T) {
	m, l := findNamespaces(t)
	got := run(t, m, l, System(), `for n in user pid net ipc uts mnt; do readlink /proc/self/ns/$n; done
grep -E '^Cap(Prm|Eff|Bnd|Amb):' /proc/self/status | tr -d '\t0\n'; echo
unshare -U true 2>/dev/null && echo made a namespace
test ! -w /proc/sys/kernel/core_pattern || echo can write settings
(: >/new) 2>/dev/null && echo wrote to the root
true`)
	lines := strings.Split(got, "\n")
	for i, name := range []string{"user", "pid", "net", "ipc", "uts", "mnt"} {
		if own, err := os.Readlink("/proc/self/ns/" + name); err != nil || lines[i] == own || lines[i] == "" {
			t.Errorf("its %s namespace is %s, and ours %s, %v", name, lines[i], own, err)
		}
	}
	if rest := strings.Join(lines[6:], "\n"); rest != "CapPrm:CapEff:CapBnd:CapAmb:\n" {
		t.Errorf("it says\n%s", rest)
	}
}

// The home directory has toolchains and no passwords, also where a variable leads there.
func TestHome(t *testing.T) {
	m, l := findNamespaces(t)
	home := t.TempDir()
	write(t, home, filepath.Base, "go/pkg/mod/x", ".cargo/registry/x", ".cargo/credentials.toml", ".ssh/id", ".m2/settings.xml",
		".m2/repository/x", ".npmrc")
	env := []string{"CARGO_HOME=" + home + "/.cargo", "PATH=" + home + "/bin:/usr/bin:/bin", "GOPATH=" + home, "JAVA_HOME=relative"}
	got := run(t, m, l, slices.Concat(System(), Home(home), Toolchains(env, home)), "cd "+home+"; find . -type f | sort | tr '\n' ' '")
	if got != "./.cargo/registry/x ./.m2/repository/x ./go/pkg/mod/x " {
		t.Errorf("the home directory has %s", got)
	}
	for _, dir := range []string{"", "/", "relative"} {
		if r := Home(dir); r != nil {
			t.Errorf("the home directory %q: %v", dir, r)
		}
	}
}

// The links of the system stay links: /var/run, bound as what it leads to, would be the sockets of the machine.
func TestLinksOfTheSystemStayLinks(t *testing.T) {
	for _, dir := range []string{"/", "/var"} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if to, err := os.Readlink(path); err == nil && !slices.Equal(mount(Rule{Path: path}), []string{"--symlink", to, path}) {
				t.Errorf("%s becomes %v", path, mount(Rule{Path: path}))
			}
		}
	}
}

// A directory in memory holds enough for a build, on small machines too.
func TestDirectoriesInMemoryAreLargeEnough(t *testing.T) {
	if n := emptySize(); n < 256<<20 || n < proc.MachineMemory()/16 {
		t.Errorf("they hold %d bytes", n)
	}
}

// Where bubblewrap does not work, Landlock takes over and says why; the error says so where neither does.
func TestWithoutBubblewrap(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		env, dirs []string
		want      string
	}{
		"not installed":                        {[]string{"PATH=" + dir + "/none"}, nil, "bubblewrap is not installed"},
		"one that fails, on one line":          {[]string{"PATH=" + dir + ":/usr/bin:/bin"}, nil, "bwrap: Creating new namespace failed: no"},
		"one in the repository is not trusted": {[]string{"PATH=" + dir}, []string{dir}, "bubblewrap is not installed"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\necho 'bwrap: Creating new namespace failed:' >&2\necho no >&2\nexit 1\n"), 0o700))
		m, err := Find(t.Context(), c.env, c.dirs...)
		said := fmt.Sprint(err)
		if err == nil {
			_, why, remedy := m.Lacks()
			if said = why; m.Name() != "Landlock" || remedy == "" {
				t.Errorf("%s: found %s, remedy %q", name, m.Name(), remedy)
			}
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", name, said)
		}
	}
	given, giveUp := context.WithCancelCause(t.Context())
	giveUp(errors.ErrUnsupported)
	if _, err := Find(given, []string{"PATH=" + dir + ":/usr/bin:/bin"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("given up: %v", err)
	}
}

// A home directory has links to toolchains. What a program has put in its place leads nowhere else.
func TestMakeHome(t *testing.T) {
	dir, home, outside := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".cargo/bin"), 0o755))
	for range 2 { // the second time it is there already
		require.NoError(t, MakeHome(dir, "home", home))
	}
	if to, err := os.Readlink(filepath.Join(dir, "home/.cargo/bin")); to != filepath.Join(home, ".cargo/bin") {
		t.Errorf("leads to %q, %v", to, err)
	}
	for _, name := range []string{"link", "below/.cargo"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, name)))
		if err := MakeHome(dir, strings.TrimSuffix(name, "/.cargo"), home); err == nil {
			t.Errorf("%s: a link that leads out is no error", name)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("made outside: %v", left)
	}
}

// findLandlocked returns Landlock, also where bubblewrap works.
func findLandlocked(t testing.TB) Method {
	t.Helper()
	m, err := findLandlock(t.Context(), errors.New("bubblewrap is not asked"))
	if err != nil {
		tier.Missing(t, err.Error())
	}
	return m
}

// A rule for a path counts more than one for a directory above it, in whatever order the two are given: what is hidden
// can neither be opened nor listed.
func TestLandlockRulesBelowOthers(t *testing.T) {
	m := findLandlocked(t)
	_, l := find(t)
	base := t.TempDir()
	write(t, base, filepath.Base, "read/a", "read/b", "read/dir/c", "read/hidden/d", "read/hidden/shown/e", "read/write/f", "other/g",
		"masked/h", "masked/i", "elsewhere/g")
	at := func(name string) string { return filepath.Join(base, name) }
	// Links lead to what has its own rules, by whatever name a rule is given.
	require.NoError(t, errors.Join(os.Symlink(at("other"), at("read/link")), os.Symlink(at("read"), at("alias"))))
	rules := Rules{{Path: at("read")}, {Path: at("alias/hidden"), Access: Empty}, {Path: at("read/hidden/shown")},
		{Path: at("read/write"), Access: Write}, {Path: at("read/a"), Access: Masked}, {Path: at("missing")},
		{Path: at("masked")}, {Path: at("masked/h"), Access: Masked}, {Path: at("masked/i")}, {Path: at("elsewhere"), From: at("other")}}
	command := `cd ` + base + `; for f in read/a read/b read/dir/c read/hidden/d read/hidden/shown/e read/write/f read/link/g other/g elsewhere/g masked/h masked/i; do
echo "$f=$(cat $f 2>/dev/null)"; done
for d in . read read/dir read/hidden read/write read/hidden/shown masked other; do (ls $d >/dev/null) 2>/dev/null && echo listed $d; (echo x > $d/new) 2>/dev/null && echo wrote $d; done
ln read/b read/write/b 2>/dev/null || echo no link; mv read/write/f read/f 2>/dev/null || echo no move; mv read/write/new read/write/old && rm read/write/old && echo moved`
	want := []string{"read/a=", "read/b=b", "read/dir/c=c", "read/hidden/d=", "read/hidden/shown/e=e", "read/write/f=f",
		"read/link/g=", "other/g=", "elsewhere/g=", "masked/h=", "masked/i=i",
		"listed read/dir", "listed read/write", "wrote read/write", "listed read/hidden/shown", "listed masked", "no link", "no move", "moved", ""}
	for range len(rules) {
		if got := run(t, m, l, append(System(), rules...), command); got != strings.Join(want, "\n") {
			t.Fatalf("%v:\n%s", rules, got)
		}
		rules = append(slices.Clone(rules[1:]), rules[0])
	}
	for _, path := range []string{"/", base, "/root"} {
		if got := run(t, m, l, System(), "ls "+path+" 2>&1 || echo refused"); !strings.Contains(got, "refused") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if f, writable, err := rules.ruleset(); err != nil || f.Close() != nil || !slices.Equal(writable, []string{at("read/write")}) {
		t.Errorf("writable: %q, %v", writable, err)
	}
	if _, _, err := (Rules{{Path: at("none"), MustExist: true}}).ruleset(); err == nil {
		t.Error("what must exist and does not is no error")
	}
}

// The profile has the rules of directories before those of what is below, with real paths, and what a path has of its
// own syntax is a part of the string. No test here runs it: macOS does, in findSeatbelt.
func TestProfile(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	quoted := filepath.Join(base, `a") (allow default) "\`)
	for _, dir := range []string{"home/tools", "home/lane", quoted[len(base):]} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	require.NoError(t, os.Symlink(filepath.Join(base, "home"), filepath.Join(base, "link")))
	at := func(name string) string { return filepath.Join(base, name) }
	got, err := Rules{{Path: at("link/lane"), Access: Write}, {Path: at("home/tools")}, {Path: at("home"), Access: Empty},
		{Path: at("missing")}, {Path: at("elsewhere"), From: at("home")}, {Path: quoted}}.profile()
	require.NoError(t, err)
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
