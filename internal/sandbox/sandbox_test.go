package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/landlock"
	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	ForwardMain()
	os.Exit(m.Run())
}

// find returns the method that works here.
func find(t testing.TB) (*Method, proc.Launcher) {
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
func findNamespaces(t testing.TB) (*Method, proc.Launcher) {
	t.Helper()
	m, l := find(t)
	if !m.HasNamespaces {
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
func run(t testing.TB, m *Method, l proc.Launcher, r Rules, command string) string {
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

// Of two rules for one path the later counts, by whatever names. Links stay links, and what is shown already needs no
// rule.
func TestRulesAreForWhatPathsLeadTo(t *testing.T) {
	base := t.TempDir()
	write(t, base, filepath.Base, "real/home/key", "real/tool/x", "shown/deep/x")
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, errors.Join(os.Symlink("real", at("a")), os.Symlink(at("a/home/../tool"), at("b")), os.Symlink("loop", at("loop")),
		os.Symlink("../real", at("shown/link"))))
	links := []Rule{{at("a"), link, "real", false}, {at("b"), link, at("a/home/../tool"), false}}
	for _, c := range []struct{ rules, want Rules }{
		{Rules{{Path: at("a/home"), Access: Empty}, {Path: at("real/home")}}, Rules{links[0], {Path: at("real/home")}}},
		{Rules{{Path: at("real/home")}, {Path: at("a/home/"), Access: Empty}}, Rules{links[0], {Path: at("real/home"), Access: Empty}}},
		{Rules{{Path: at("b/x")}}, Rules{links[0], links[1], {Path: at("real/tool/x")}}},
		{Rules{{Path: at("shown")}, {Path: at("shown/deep")}, {Path: at("shown/link")}}, Rules{{Path: at("real")}, {Path: at("shown")}}},
		{Rules{{Path: at("shown")}, {Path: at("shown/deep"), Access: Write}, {Path: at("shown/deep/x")}},
			Rules{{Path: at("shown")}, {Path: at("shown/deep"), Access: Write}, {Path: at("shown/deep/x")}}},
		{Rules{{Path: at("real")}, {Path: at("real/home"), Access: Empty}, {Path: at("real/home/key")}},
			Rules{{Path: at("real")}, {Path: at("real/home"), Access: Empty}, {Path: at("real/home/key")}}},
		{Rules{{Path: at("loop/x")}, {Path: at("none/x"), From: base}}, Rules{{at("loop"), link, "loop", false}, {Path: at("loop/x")}, {Path: at("none/x"), From: base}}},
		{Rules{{Path: at("shown")}, {Path: at("shown/none"), From: base}, {Path: at("shown/deep/x"), From: base}},
			Rules{{Path: at("shown")}, {Path: at("shown/deep/x"), From: base}}},
		{Rules{{Path: "/a", Access: Write}, {Path: "/a/b"}, {Path: "/a-b"}, {Path: "/a/"}}, Rules{{Path: "/a"}, {Path: "/a-b"}}},
	} {
		before := slices.Clone(c.rules)
		if got := c.rules.resolved(); !slices.Equal(got, c.want) || !slices.Equal(c.rules, before) {
			t.Errorf("%+v:\n%+v\nwant\n%+v", before, got, c.want)
		}
	}
	var many Rules
	for i := range 100 {
		many = append(many, Rule{Path: fmt.Sprintf("/%02d", i%20), From: fmt.Sprint(i)})
	}
	if got := many.resolved(); !slices.Equal(got, many[80:]) {
		t.Errorf("of many the last are not %v", got)
	}
}

// readSecrets is a command that prints what it can read of the secrets of the system. It succeeds.
const readSecrets = `cat /etc/shadow /etc/gshadow /etc/ssl/private/* /etc/ssh/ssh_host_*_key 2>/dev/null; true`

// A program has namespaces of its own, but as root that of its user, and no capability but to open files as root. It can
// make no more namespaces, and writes neither to the root nor to the settings of the kernel.
func TestAProgramIsAlone(t *testing.T) {
	m, l := findNamespaces(t)
	temporary := []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}
	temporary = slices.DeleteFunc(temporary, func(dir string) bool { _, err := os.Stat(dir); return err != nil })
	got := run(t, m, l, System(), `for n in user pid net ipc uts mnt; do readlink /proc/self/ns/$n; done
grep -E '^Cap(Prm|Eff):' /proc/self/status | tr -d '\t0\n'; grep -E '^NoNewPrivs' /proc/self/status | tr -d '\t'
unshare -U true 2>/dev/null && echo made a namespace
test ! -w /proc/sys/kernel/core_pattern || echo can write settings
(: >/new) 2>/dev/null && echo wrote to the root
for d in `+strings.Join(temporary, " ")+`; do (: >$d/new) 2>/dev/null || echo cannot write to $d; done
`+readSecrets)
	lines := strings.Split(got, "\n")
	for i, name := range []string{"user", "pid", "net", "ipc", "uts", "mnt"} {
		isRoots := name == "user" && os.Geteuid() == 0
		if own, err := os.Readlink("/proc/self/ns/" + name); err != nil || !isRoots && lines[i] == own || lines[i] == "" {
			t.Errorf("its %s namespace is %s, and ours %s, %v", name, lines[i], own, err)
		}
	}
	capabilities := "CapPrm:CapEff:"
	if os.Geteuid() == 0 {
		capabilities = "CapPrm:2CapEff:2" // CAP_DAC_OVERRIDE
	}
	if rest := strings.Join(lines[6:], "\n"); rest != capabilities+"NoNewPrivs:1\n" {
		t.Errorf("it says\n%s", rest)
	}
}

// What is there is mounted as its rule says. What is not there is left out, unless it must exist. A directory in memory
// holds enough for a build, on small machines too.
func TestMount(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", filepath.Base, "dir/file")
	require.NoError(t, os.Symlink("dir", "link"))
	tmpfs := fmt.Sprintf("--size %d --tmpfs ", max(256<<20, proc.MachineMemory()/16))
	rows := map[Rule]string{
		{Path: "dir"}: "--ro-bind dir dir", {Path: "dir", Access: Write}: "--bind dir dir", {Path: "none"}: "",
		{Path: "none", Access: Write, MustExist: true}: "--bind none none", {Path: "link"}: "--ro-bind link link",
		{Path: "/bin", From: "dir"}: "--ro-bind dir /bin", {Path: "dir", From: "none"}: "",
		{Path: "none", From: "dir", Access: Write}: "--bind dir none", {Path: "dir", Access: Empty}: tmpfs + "dir",
		{Path: "/bin", Access: link, From: "usr/bin"}: "--symlink usr/bin /bin", {Path: "none", Access: Empty}: "", {Path: "none", Access: Empty, MustExist: true}: tmpfs + "none",
		{Path: "dir/file", Access: Masked}: "--ro-bind /dev/null dir/file", {Path: "none", Access: Masked}: "",
	}
	for x, want := range rows {
		if got := strings.Join(mount(x), " "); got != want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}

// Where bubblewrap does not work, Landlock takes over and says why; the error says so where neither does.
func TestWithoutBubblewrap(t *testing.T) {
	const fails = "#!/bin/sh\necho 'bwrap: No new namespace:' >&2\necho no >&2\nexit 1\n"
	dir := t.TempDir()
	for name, c := range map[string]struct {
		program, path string
		dirs          []string
		want          string
	}{
		"not installed":         {fails, dir + "/none", nil, "bubblewrap is not installed"},
		"one that fails":        {fails, dir + ":/usr/bin:/bin", nil, "bubblewrap fails: bwrap: No new namespace: no"},
		"one in the repository": {fails, dir, []string{dir}, "bubblewrap is not installed"},
		"one that says nothing": {"#!/bin/sh\nexit 3\n", dir, nil, "bubblewrap fails: exit status 3"},
		"no program":            {"what", dir, nil, "bubblewrap does not start: "},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte(c.program), 0o700))
		m, err := Find(t.Context(), []string{"PATH=" + c.path}, c.dirs...)
		said, remedy := fmt.Sprint(err), muster.HintOf(err)
		if err == nil {
			said, remedy = m.Why, m.Remedy
			if m.Name != "Landlock" || strings.Contains(m.Lacks, "signals") == landlock.KeepsSignals() {
				t.Errorf("%s: found %s, which lacks %s, because %s", name, m.Name, m.Lacks, said)
			}
		}
		if !strings.Contains(said, c.want) || remedy == "" {
			t.Errorf("%s: %s", name, said)
		}
	}
	given, giveUp := context.WithCancelCause(t.Context())
	giveUp(errors.ErrUnsupported)
	if _, err := Find(given, []string{"PATH=" + dir + ":/usr/bin:/bin"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("given up: %v", err)
	}
}

// findLandlocked returns Landlock, also where bubblewrap works.
func findLandlocked(t testing.TB) *Method {
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
	_, l := find(t)
	m, base := findLandlocked(t), t.TempDir()
	write(t, base, filepath.Base, "read/a", "read/b", "read/dir/c", "read/hidden/d", "read/hidden/shown/e", "read/write/f", "other/g",
		"masked/h", "masked/i", "elsewhere/g", "read/dir/deep/j")
	at := func(name string) string { return filepath.Join(base, name) }
	// Links lead to what has its own rules, by whatever name a rule is given.
	require.NoError(t, errors.Join(os.Symlink(at("other"), at("read/link")), os.Symlink(at("read"), at("alias"))))
	rules := Rules{{Path: at("read")}, {Path: at("alias/hidden"), Access: Empty}, {Path: at("read/hidden/shown")},
		{Path: at("read/write"), Access: Write}, {Path: at("read/a"), Access: Masked}, {Path: at("missing")},
		{Path: at("read/dir/deep"), Access: Empty}, {Path: at("masked")}, {Path: at("masked/h"), Access: Masked},
		{Path: at("masked/i")}, {Path: at("elsewhere"), From: at("other")}}
	command := `cd ` + base + `; for f in read/a read/b read/dir/c read/hidden/d read/hidden/shown/e read/write/f read/link/g other/g elsewhere/g masked/h masked/i read/dir/deep/j; do
echo "$f=$(cat $f 2>/dev/null)"; done
for d in . read read/dir read/hidden read/write read/hidden/shown masked other; do (ls $d >/dev/null) 2>/dev/null && echo listed $d; (echo x > $d/new) 2>/dev/null && echo wrote $d; done
ln read/b read/write/b 2>/dev/null || echo no link; mv read/write/f read/f 2>/dev/null || echo no move; mv read/write/new read/write/old && rm read/write/old && echo moved
chmod 700 read/write/f && echo changed; chmod 700 read/b 2>/dev/null || echo kept
for f in dev/null dev/zero dev/full dev/random dev/urandom proc/stat; do head -c1 /$f >/dev/null || echo no $f; done
` + readSecrets
	want := []string{"read/a=", "read/b=b", "read/dir/c=c", "read/hidden/d=", "read/hidden/shown/e=e", "read/write/f=f",
		"read/link/g=", "other/g=", "elsewhere/g=", "masked/h=", "masked/i=i", "read/dir/deep/j=",
		"listed read/write", "wrote read/write", "listed read/hidden/shown", "listed masked",
		"no link", "no move", "moved", "changed", "kept", ""}
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
	require.NoError(t, os.Symlink(at("other"), at("masked/link")))
	all := Rule{Path: at("masked"), Access: Write}
	for _, c := range []struct {
		rules Rules
		want  string
	}{
		{rules, "read/write"}, {Rules{{Path: at("masked")}, {Path: at("masked"), Access: Empty}, all}, "masked"},
		{Rules{all, {Path: at("masked")}}, ""}, {Rules{all, {Path: at("masked/h"), Access: Masked}}, "masked/i"},
		{Rules{all, {Path: at("masked/i"), Access: Empty}}, "masked/h"}, {Rules{all, {Path: at("masked/i")}}, "masked"},
	} {
		m, err := c.rules.ruleset()
		require.NoError(t, err)
		if got := strings.ReplaceAll(strings.Join(m.writable, " "), base+"/", ""); got != c.want {
			t.Errorf("%v: %s may be written and not %s", c.rules, got, c.want)
		}
	}
	if _, err := (Rules{{Path: at("none"), MustExist: true}}).ruleset(); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("what must exist and does not: %v", err)
	}
}

// Root uses the files of another user whatever their modes say, as far as the rules go.
func TestRootInAnotherUsersDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root uses files of others")
	}
	m, l := find(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, "home", name) }
	write(t, at("."), filepath.Base, "repo/read/a", "repo/write/b", "private/key")
	require.NoError(t, exec.CommandContext(t.Context(), "chown", "-R", "1000:1000", at(".")).Run())
	require.NoError(t, exec.CommandContext(t.Context(), "chmod", "-R", "u=rwX,go=", at(".")).Run())
	rules := append(System(), Rule{Path: at("repo/read")}, Rule{Path: at("repo/write"), Access: Write})
	for _, m := range []*Method{m, findLandlocked(t)} {
		got := run(t, m, l, rules, "cd "+at("repo")+`; cat read/a write/b; echo c >write/c; cat write/c; (echo d >read/d) 2>/dev/null && echo wrote
cat ../private/key 2>/dev/null; chmod 666 read/a 2>/dev/null && echo changed; true`)
		if got != "abc\n" {
			t.Errorf("%s: %q", m.Name, got)
		}
		require.NoError(t, os.Remove(at("repo/write/c")))
	}
}

// A ruleset serves the next programs while all that it names is what it was.
func TestLandlockFollowsChanges(t *testing.T) {
	defer func(was time.Duration) { tick = was }(tick)
	tick = 50 * time.Millisecond
	m := findLandlocked(t)
	_, l := find(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	write(t, base, filepath.Base, "etc/secret", "etc/conf", "work/a")
	rules := append(System(), Rule{Path: at("etc")}, Rule{Path: at("etc/secret"), Access: Masked}, Rule{Path: at("work"), Access: Write})
	look := func(want string) {
		t.Helper()
		if got := run(t, m, l, rules, "cd "+base+" && cat etc/* work/* 2>/dev/null; echo x >work/new"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	kept := func() *os.File {
		m, err := rules.ruleset()
		require.NoError(t, err)
		return m.file
	}
	unchanged := func() { wait.Elapse(2 * tick) }
	if young := kept(); kept() == young {
		t.Error("a ruleset is kept although a directory has just changed")
	}
	unchanged()
	look("confa")
	first := kept()
	look("confax\n")
	if kept() != first {
		t.Error("the same rules are made again")
	}
	write(t, base, strings.ToUpper, "etc/next")
	require.NoError(t, os.Rename(at("etc/next"), at("etc/conf")))
	unchanged()
	look("ETC/NEXTax\n")
	require.NoError(t, os.Rename(at("work"), at("old")))
	write(t, base, filepath.Base, "work/b")
	look("ETC/NEXTb")
}

// The profile has the rules of directories before those of what is below, with real paths, and what a path has of its
// own syntax is a part of the string. No test here runs it: macOS does, in findSeatbelt.
func TestProfile(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	quoted := filepath.Join(base, `a") (allow default) "\`)
	for _, dir := range []string{"home/tools", "home/lane", "home/key", quoted[len(base):]} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	require.NoError(t, os.Symlink(filepath.Join(base, "home"), filepath.Join(base, "link")))
	at := func(name string) string { return filepath.Join(base, name) }
	got, err := Rules{{Path: at("link/lane"), Access: Write}, {Path: at("home/tools")}, {Path: at("home"), Access: Empty},
		{Path: at("missing")}, {Path: at("home/lane"), From: at("home")}, {Path: at("home/key"), Access: Masked},
		{Path: quoted}}.profile()
	require.NoError(t, err)
	_, rules, _ := strings.Cut(got, "\"/dev/tty\"))\n")
	want := strings.NewReplacer("BASE", base).Replace(`(allow file-read* (subpath "BASE/a\") (allow default) \"\\"))
(deny file-write* (subpath "BASE/a\") (allow default) \"\\"))
(deny file-read-data file-read-xattr file-write* (subpath "BASE/home"))
(deny file-read-data file-read-xattr file-write* (subpath "BASE/home/key"))
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

// A program that writes in a directory cannot lead a rule for a path in it elsewhere.
func TestALinkThatAProgramMayHaveMade(t *testing.T) {
	dir := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, d := range []string{"cache", "home", "real"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	cache, home := filepath.Join(dir, "cache"), filepath.Join(dir, "home")
	for name, to := range map[string]string{"cache/sub": home, "cache/deep": ".", "other": "cache"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, path := range []string{"cache/sub", "cache/deep/sub", "cache/sub/x", "other/sub"} {
		for _, access := range []Access{Read, Write, Masked} {
			rules := Rules{{Path: filepath.Join(dir, path), Access: access}, {Path: cache, Access: Write}}
			for _, x := range rules.resolved() {
				if IsBelow(home, x.Path) {
					t.Errorf("%s (%v) leads to %s", path, access, x.Path)
				}
			}
		}
	}
}
