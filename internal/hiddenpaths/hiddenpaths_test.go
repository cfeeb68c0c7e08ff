package hiddenpaths

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/testing/require"
)

// A hidden path that a program complains about is named. The user is told once of each directory, and only of those
// that the environment names.
func TestLine(t *testing.T) {
	base := filepath.Join(t.TempDir(), "ann's home")
	for _, dir := range []string{"tools/sub", "shown/bin", "jdk/bin", "repo/lane", "tmp", "apps"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for _, name := range []string{"tools/dot", "shown/bin/seen", "jdk/bin/java", "apps/linked", "repo/own"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, name), nil, 0o755))
	}
	for link, to := range map[string]string{"linked": "apps", "own": "repo"} {
		require.NoError(t, os.Symlink(filepath.Join("../..", to, link), filepath.Join(base, "shown/bin", link)))
	}
	at := func(s string) string { return strings.ReplaceAll(s, "$", base) }
	env := strings.Split(at("PATH=$/tools:$/shown/bin:$/none|JAVA_HOME=$/jdk|GOROOT=$/shown|PROJECT=$/repo|VIRTUAL_ENV=$/repo/lane"), "|")
	rules := slices.Concat(sandbox.Read.Rules(at("$/shown"), at("$/.npmrc")), sandbox.Empty.Rules(base))
	var told []string
	p := Find(env, base, rules, []string{at("$/repo")}, func(text string) { told = append(told, text) })
	if got, want := append(p.Programs, p.Variables...), []string{at("$/tools"), at("JAVA_HOME=$/jdk")}; !slices.Equal(got, want) {
		t.Fatalf("hidden: %q, want %q", got, want)
	}
	for _, c := range []struct {
		output string
		want   string // the path that is named
	}{
		{"sh: 1: dot: not found", "$/tools/dot"},
		{"bash: line 1: dot: command not found", "$/tools/dot"},
		{"sh: 1: linked: not found", "$/apps/linked"}, {"sh: 1: own: not found", ""},
		{"env: ‘dot’: No such file or directory", "$/tools/dot"},
		{`exec: "dot": executable file not found in $PATH`, "$/tools/dot"},
		{"Error: spawn dot ENOENT", "$/tools/dot"},
		{"bash: $/tools/dot: Permission denied", "$/tools/dot"},
		{"$/jdk/bin/java: No such file or directory", "$/jdk/bin/java"},
		{"PermissionError: [Errno 13] Permission denied: '$/notes.txt'", "$/notes.txt"},
		{"Error: EACCES: permission denied, open '$/.config/x.json'", "$/.config/x.json"},
		{"one line\ncat: $/a: No such file or directory\nthe last line", "$/a"},
		{"$/repo/lane/build.sh: line 3: $/x/y: No such file or directory", "$/x/y"},
		{"cat: $/repo/lane/a: No such file or directory", ""},
		{"cat: $/tmp/muster/a: No such file or directory", ""},
		{"cat: $/shown/a: No such file or directory", ""}, {"npm: $/.npmrc: permission denied", ""},
		{"cat: $/own home/.foo: No such file or directory", "$/.foo"},
		{"cat: $/.ssh/id: No such file or directory", ""}, {"$/.config/gcloud/x: Permission denied", ""},
		{"cat: a: No such file or directory", ""}, {"seen: not found", ""}, {"sub: not found", ""}, {"..: not found", ""},
		{"reading $/notes.txt", ""}, {"$: No such file or directory", ""}, {"/etc/shadow: Permission denied", ""}, {"", ""},
	} {
		line := p.Line(proc.Spec{Dir: at("$/repo/lane"), Env: []string{at("TMPDIR=$/tmp/muster"), at("HOME=$/own home")}}, at(c.output))
		if path, _, _ := strings.Cut(line, " is hidden from commands; "); path != at(c.want) {
			t.Errorf("%s: it names %q, want %q", c.output, path, at(c.want))
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], at(`read: "$/tools"`)) || !strings.Contains(told[1], at(`read: "$/jdk"`)) {
		t.Errorf("the user was told %q", told)
	}
}
