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

// What a program complains about is named where it is hidden. The user is told once, and only of what the environment
// names.
func TestWatch(t *testing.T) {
	base := filepath.Join(t.TempDir(), "ann's home")
	for _, dir := range []string{"tools/sub", "shown/bin", "jdk/bin", "repo/lane", "tmp"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for _, name := range []string{"tools/dot", "shown/bin/seen", "jdk/bin/java"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, name), nil, 0o755))
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
		{"env: ‘dot’: No such file or directory", "$/tools/dot"},
		{`exec: "dot": executable file not found in $PATH`, "$/tools/dot"},
		{"Error: spawn dot ENOENT", "$/tools/dot"},
		{"bash: $/tools/dot: Permission denied", "$/tools/dot"},
		{"$/jdk/bin/java: No such file or directory", "$/jdk/bin/java"},
		{"PermissionError: [Errno 13] Permission denied: '$/notes.txt'", "$/notes.txt"},
		{"Error: EACCES: permission denied, open '$/.config/x.json'", "$/.config/x.json"},
		{"one line\ncat: $/a: No such file or directory\nthe last line", "$/a"},
		{"cat: $/repo/lane/a: No such file or directory", ""},
		{"cat: $/tmp/muster/a: No such file or directory", ""},
		{"cat: $/shown/a: No such file or directory", ""}, {"npm: $/.npmrc: permission denied", ""},
		{"cat: $/own home/.foo: No such file or directory", "$/.foo"},
		{"cat: $/.ssh/id: No such file or directory", ""}, {"$/.config/gcloud/x: Permission denied", ""},
		{"cat: a: No such file or directory", ""}, {"seen: not found", ""}, {"sub: not found", ""}, {"..: not found", ""},
		{"reading $/notes.txt", ""}, {"$: No such file or directory", ""}, {"/etc/shadow: Permission denied", ""}, {"", ""},
	} {
		var out strings.Builder
		s, ended := p.Watch(proc.Spec{Out: &out, Dir: at("$/repo/lane"), Env: []string{at("TMPDIR=$/tmp/muster"), at("HOME=$/own home")}})
		_, _ = s.Out.Write([]byte(strings.Repeat("x", 20_000) + "\n" + at(c.output)))
		ended(0)
		if strings.Contains(out.String(), "hidden") {
			t.Errorf("%s: said after a success", c.output)
		}
		ended(1)
		_, after, isSaid := strings.Cut(out.String(), at(c.output)+"[")
		path, _, _ := strings.Cut(after, " is hidden from commands; ")
		if isSaid != (c.want != "") || path != at(c.want) {
			t.Errorf("%s: said of %q, want %q", c.output, path, at(c.want))
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], at(`read: "$/tools"`)) || !strings.Contains(told[1], at(`read: "$/jdk"`)) {
		t.Errorf("the user was told %q", told)
	}
}

// Where nothing is looked for, a program is as it was.
func TestWatchNothing(t *testing.T) {
	s := proc.Spec{Dir: "x"}
	for _, p := range []*Paths{nil, {}} {
		got, ended := p.Watch(s)
		if ended(1); got.Out != nil {
			t.Errorf("its output is %v", got.Out)
		}
	}
}
