package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster"
	"muster/internal/testing/require"
)

// place makes a repository and a user's directory with these files; "" makes none. The user trusts the repository.
func place(t *testing.T, repo, user string) Options {
	t.Helper()
	o := Options{Root: t.TempDir(), UserDir: t.TempDir(), Trusts: func(string, string) (bool, error) { return true, nil }}
	for path, text := range map[string]string{filepath.Join(o.Root, File): repo, UserFile(o.UserDir): user} {
		if text == "" {
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return o
}

func value(t *testing.T, vs []Value, name string) Value {
	t.Helper()
	for _, v := range vs {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no value %s", name)
	return Value{}
}

func TestDefaults(t *testing.T) {
	s, vs, err := Load(place(t, "", ""))
	require.NoError(t, err)
	want := Settings{
		Run: Run{Teammates: 4, Ports: 3, Limits: Limits{SubagentTurns: 30, TodoLimit: 20, TodoReminder: 10,
			IdleTimeout: time.Minute, IdlePoll: 5 * time.Second,
			BashTimeout: 2 * time.Minute, BackgroundTimeout: 5 * time.Minute, CheckTimeout: 10 * time.Minute,
			ModelPatience: time.Hour}},
		Sandbox:   Sandbox{On: true, SetupNetwork: s.Sandbox.SetupNetwork},
		Processes: 10000, Memory: "75%", FileSize: "20GB", FreeDisk: "1GB"}
	if d := cmp.Diff(want, s, cmp.AllowUnexported(Endpoints{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	for _, v := range vs {
		if v.Source != "default" || v.Description == "" || strings.Contains(v.Description, "\n") {
			t.Errorf("%+v", v)
		}
	}
	if v := value(t, vs, "check_timeout"); v.Value != "10m" {
		t.Errorf("shown as %q", v.Value)
	}
}

func TestWhoOverridesWhom(t *testing.T) {
	o := place(t,
		"# ours\ncheck: go test ./...\nteammates: 3\nmax_turns: 20\nworktrees: {dir: ../lanes}\nlanding:\n  merge_commits: true\n",
		"teammates: 2\nmax_turns: 10\nbash_timeout: 90s\nidle_timeout: 0\neffort: high\nsetup:\n")
	o.Environ = []string{"MUSTER_TEAMMATES=5", "MUSTER_LAND=", "MUSTER_WORKTREES_DIR=/elsewhere",
		"MUSTER_SOMETHING=else"}
	o.Flags = map[string]string{"teammates": "0", "check": "", "max-tokens": "500"}
	s, vs, err := Load(o)
	require.NoError(t, err)
	for _, c := range []struct{ name, value, source string }{
		{"teammates", "0", "flag --teammates"},
		{"check", "", "flag --check"},
		{"max_tokens", "500", "flag --max-tokens"},
		{"max_turns", "20", "muster.yaml"},
		{"worktrees.dir", "/elsewhere", "env MUSTER_WORKTREES_DIR"},
		{"landing.merge_commits", "true", "muster.yaml"},
		{"bash_timeout", "1m30s", "user config " + UserFile(o.UserDir)},
		{"idle_timeout", "0s", "user config " + UserFile(o.UserDir)},
		{"effort", "high", "user config " + UserFile(o.UserDir)},
		{"setup", "", "default"},
		{"land", "", "default"},
	} {
		if v := value(t, vs, c.name); v.Value != c.value || string(v.Source) != c.source {
			t.Errorf("%s is %q from %q, want %q from %q", c.name, v.Value, v.Source, c.value, c.source)
		}
	}
	if s.Teammates != 0 || s.Limits.Turns != 20 || !s.MergeCommits || s.Limits.BashTimeout != 90*time.Second ||
		s.Limits.IdleTimeout >= 0 || s.Limits.MaxTokens != 500 {
		t.Errorf("%+v", s)
	}
}

// TestDirectory: commands that people type or set for themselves start where members do, and those of muster.yaml at the
// top, where it lies, unless it names the directory too.
func TestDirectory(t *testing.T) {
	for _, c := range []struct{ file, environ, start, directory, source, check, setup string }{
		{"check: a; b\nsetup: s", "", "", "", "default", "a; b", "s"},
		{"check: a; b\nsetup: s", "", "web/app", "web/app", "where you are", "a; b", "s"},
		{"setup: s", "MUSTER_CHECK=a", "web app", "web app", "where you are", "cd 'web app'; a", "s"},
		{"", "MUSTER_CHECKS=[{\"name\":\"n\",\"command\":\"a\"}]", "web", "web", "where you are", "n: cd web; a", ""},
		{"check: a\ndirectory: ./web/", "", "api", "web", "muster.yaml", "cd web; a", ""},
		{"check: a\ndirectory: web", "MUSTER_DIRECTORY=.", "api", "", "env MUSTER_DIRECTORY", "a", ""},
		{"check: a", "MUSTER_DIRECTORY=web", "", "web", "env MUSTER_DIRECTORY", "a", ""},
	} {
		o := place(t, c.file, "")
		o.Environ, o.Start = []string{c.environ}, c.start
		s, vs, err := Load(o)
		require.NoError(t, err)
		check := muster.Run{Check: s.Check, Checks: s.Checks}.CheckText()
		if v := value(t, vs, "directory"); s.Directory != c.directory || string(v.Source) != c.source || check != c.check || s.Setup != c.setup {
			t.Errorf("%+v: %q of %s, %q, %q", c, s.Directory, v.Source, check, s.Setup)
		}
	}
	for _, dir := range []string{"..", "/etc", "a/../../b"} {
		o := place(t, "", "")
		o.Environ = []string{"MUSTER_DIRECTORY=" + dir}
		if _, _, err := Load(o); err == nil || !strings.Contains(err.Error(), "directory is a path inside the repository, relative to its top, not") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestTextIsTakenAsItIsWritten(t *testing.T) {
	o := place(t, "check: true\nsetup: |\n  npm ci\n  make\nteam: \"a\"\nland: 2.10\n", "")
	s, _, err := Load(o)
	require.NoError(t, err)
	if s.Check != "true" || s.Setup != "npm ci\nmake" || s.Team != "a" || s.Land != "2.10" {
		t.Errorf("%+v", s)
	}
}

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		repo, environ, flag string
		want                string
	}{
		{repo: "check: x\nteamates: 3\n",
			want: `muster.yaml:2:1: there is no setting "teamates" (did you mean teammates?)`},
		{repo: "landing: {merge: true}\n", want: `muster.yaml:1:11: there is no setting "landing.merge"`},
		{repo: "landing: true\n", want: "muster.yaml:1:10: settings are expected here"},
		{repo: "teammates: many\n", want: `muster.yaml:1:12: teammates is a whole number, at least 0, not "many"`},
		{repo: "idle_timeout: 60\n",
			want: `muster.yaml:1:15: idle_timeout is a duration with its unit, such as 90s or 2m, not "60"`},
		{repo: "idle_poll: 99ms\n", want: `muster.yaml:1:12: idle_poll is a duration, at least 100ms, not "99ms"`},
		{repo: "todo_limit: 0\n", want: `muster.yaml:1:13: todo_limit is a whole number, at least 1`},
		{repo: "check_timeout: 0s\n", want: "muster.yaml:1:16: check_timeout is a duration"},
		{repo: "landing:\n  merge_commits: yes\n",
			want: `muster.yaml:2:18: landing.merge_commits is true or false, not "yes"`},
		{repo: "effort: huge\n", want: "muster.yaml:1:9: effort is one of minimal, low, medium"},
		{repo: "check: [a, b]\n", want: "muster.yaml:1:8: check is one value, not a list or a mapping"},
		{repo: "- check\n", want: "muster.yaml:1:1: settings are expected here"},
		{repo: "check: a\ncheck: b\n", want: "muster.yaml:2:1: "},
		{repo: "check: a\n---\ncheck: b\n", want: "muster.yaml: there are 2 documents"},
		{repo: "check: a\nsetup: \xff\n", want: "muster.yaml:2: this line is not UTF-8"},
		{repo: "model: gpt-5.5\n", want: `muster.yaml:1:8: "gpt-5.5" is not a model's name`},
		{repo: "environment: {pass: [A]}\n", want: "muster.yaml:1:15: a repository may not set environment.pass"},
		{environ: "MUSTER_ENVIRONMENT_PASS=A,B-C", want: "MUSTER_ENVIRONMENT_PASS: environment.pass is names of variables"},
		{repo: "team: Lead\n", want: `muster.yaml:1:7: "Lead" cannot be a name`},
		{flag: "x", want: `--teammates: teammates is a whole number`},
	} {
		o := place(t, c.repo, "")
		o.Environ = []string{c.environ}
		if c.flag != "" {
			o.Flags = map[string]string{"teammates": c.flag}
		}
		_, _, err := Load(o)
		if !errors.Is(err, muster.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %s", c.repo, err, c.want)
		}
	}
	o := place(t, "", "")
	o.Flags = map[string]string{"colour": "red"}
	if _, _, err := Load(o); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("an unknown flag: %v", err)
	}
	o = place(t, "", "teamates: 1\n")
	if _, _, err := Load(o); err == nil || !strings.HasPrefix(err.Error(), UserFile(o.UserDir)+":1:1: ") {
		t.Errorf("the user's file: %v", err)
	}
}

// A setting that an earlier version had is reported with the version that removed it and the strongest place that has
// it, wherever it stands and whatever it says. Nothing else of it counts.
func TestRemovedSettings(t *testing.T) {
	o := place(t, "check: x\nlanding: {check_covered: [odd]}\nroles:\n  arbiter:\n    model: no/model\n    colour: red\n",
		"landing.check_covered: true\narbiter_turns: 3\nkept_results: 5\n")
	o.Environ = []string{"MUSTER_ARBITER_TURNS=many"}
	s, vs, err := Load(o)
	require.NoError(t, err)
	if s.Check != "x" || len(s.Roles) != 0 || len(s.OwnModels()) != 0 {
		t.Errorf("%+v", s)
	}
	got := map[string]Source{}
	for _, v := range vs {
		if v.Removed != "" {
			got[v.Name] = v.Source
		}
	}
	want := map[string]Source{"arbiter_turns": "env MUSTER_ARBITER_TURNS", "kept_results": Source("user config " + UserFile(o.UserDir)),
		"landing.check_covered": "muster.yaml", "roles.arbiter": "muster.yaml"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A key must not go to a server that a repository names.
func TestARepositoryCannotChooseTheServer(t *testing.T) {
	const elsewhere = "openai/gpt-5.5@https://evil.example/v1"
	o := place(t, "check: x\nmodel: "+elsewhere+"\n", "")
	_, _, err := Load(o)
	if !errors.Is(err, muster.ErrInvalid) || !strings.HasPrefix(err.Error(),
		"muster.yaml:2:8: a repository may not choose the server") ||
		!strings.Contains(err.Error(), UserFile(o.UserDir)) {
		t.Errorf("got %v", err)
	}

	o.Environ = []string{"OPENAI_API_KEY=secret", "ANTHROPIC_API_KEY=secret"}
	if _, _, err := Load(o); err == nil {
		t.Error("accepted beside keys")
	}
	o.Flags = map[string]string{"model": "anthropic/claude-sonnet-5"}
	if s, _, err := Load(o); err != nil || s.Model != "anthropic/claude-sonnet-5" {
		t.Errorf("overridden: %q, %v", s.Model, err)
	}

	o = place(t, "model: "+elsewhere+"\n", "model: anthropic/claude-sonnet-5\n")
	if _, _, err := Load(o); err == nil {
		t.Error("accepted over the user's own choice")
	}
	o = place(t, "model: "+elsewhere+"\n", "model: "+elsewhere+"\n")
	if s, _, err := Load(o); err != nil || s.Model != elsewhere {
		t.Errorf("the user says the same: %q, %v", s.Model, err)
	}
	o = place(t, "model: openai/gpt-5.5\n", "")
	if s, _, err := Load(o); err != nil || s.Model != "openai/gpt-5.5" {
		t.Errorf("without a server: %q, %v", s.Model, err)
	}
}

func TestTheModelWhoseKeyIsSet(t *testing.T) {
	for _, c := range []struct{ environ, model, source string }{
		{"", "", "default"},
		{"ANTHROPIC_API_KEY=", "", "default"},
		{"OPENAI_API_KEY=k", "openai/gpt-5.5", "env OPENAI_API_KEY"},
		{"ANTHROPIC_API_KEY=k", "anthropic/claude-sonnet-5", "env ANTHROPIC_API_KEY"},
		{"OPENAI_API_KEY=k ANTHROPIC_API_KEY=k", "anthropic/claude-sonnet-5", "env ANTHROPIC_API_KEY"},
		{"ANTHROPIC_API_KEY=k MUSTER_MODEL=openai/x", "openai/x", "env MUSTER_MODEL"},
	} {
		o := place(t, "", "")
		o.Environ = strings.Fields(c.environ)
		s, vs, err := Load(o)
		if v := value(t, vs, "model"); err != nil || s.Model != c.model || v.Value != c.model ||
			string(v.Source) != c.source {
			t.Errorf("%s: %q, %+v, %v", c.environ, s.Model, v, err)
		}
	}
}

func TestValuesHoldNoSecrets(t *testing.T) {
	o := place(t, "", "")
	o.Environ = []string{"ANTHROPIC_API_KEY=topsecret", "OPENAI_API_KEY=topsecret"}
	o.Flags = map[string]string{"model": "openai/x@https://host.example/v1?key=topsecret"}
	s, vs, err := Load(o)
	require.NoError(t, err)
	if !strings.Contains(s.Model, "key=topsecret") {
		t.Errorf("the model itself lost its query: %q", s.Model)
	}
	for _, v := range vs {
		if strings.Contains(v.Value+string(v.Source), "topsecret") {
			t.Errorf("%+v", v)
		}
	}
	o.Flags["model"] = "openai/x@https://me:topsecret@host.example/v1"
	if _, _, err := Load(o); err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("got %v", err)
	}
}

func TestVariablesToPass(t *testing.T) {
	for text, want := range map[string]string{
		"environment:\n  pass: [MY_NAME, MY_*]\n": "MY_NAME,MY_*",
		"environment: {pass: MY_NAME}\n":          "MY_NAME",
		"environment:\n  pass: A, B_*\n":          "A,B_*",
		"environment: {pass: []}\n":               "",
	} {
		s, vs, err := Load(place(t, "", text))
		if err != nil || strings.Join(s.PassEnv, ",") != want || value(t, vs, "environment.pass").Value != want {
			t.Errorf("%q: %q, %v", text, s.PassEnv, err)
		}
	}
	if _, _, err := Load(place(t, "", "environment: {pass: [{a: b}]}\n")); err == nil {
		t.Error("a mapping is no name")
	}
}

// Sizes are read as people write them, and nothing else is taken for one.
func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "": 0, "1KB": 1 << 10, "512MB": 512 << 20, "1.5gb": 3 << 29, " 2 TB": 2 << 40,
		"75%": 150, "100%": 200} {
		if got, err := ParseSize(text, 200); err != nil || got != want {
			t.Errorf("%q is %d, %v and not %d", text, got, err, want)
		}
	}
	for _, text := range []string{"8", "-1GB", "GB", "%", "NaNGB", "InfGB", "1e30TB", "8 GiB", "8GBs", "0x8GB0", "-5%"} {
		if got, err := ParseSize(text, 200); err == nil {
			t.Errorf("%q is taken for %d bytes", text, got)
		}
	}
}

// A section is returned for each file, the user's first, with the places of what is in it.
func TestSectionsKeepTheirPlaces(t *testing.T) {
	o := place(t, "check: x\nhooks:\n  Stop:\n    a: one\nmcp_servers:\n", "hooks:\n  Stop: {a: 1}\nteammates: 3\n")
	o.Trusts = nil
	s, _, err := Load(o)
	require.NoError(t, err)
	found := s.SectionsNamed("hooks")
	if len(found) != 2 || !found[0].IsTrusted() || found[1].IsTrusted() || len(s.Sections) != 2 {
		t.Fatalf("found %+v", s.Sections)
	}
	type value struct {
		A int `yaml:"a"`
	}
	var v value
	for i, want := range []string{"", "muster.yaml:4:8: "} {
		all, err := found[i].Entries()
		if err != nil || len(all) != 1 || all[0].Name != "Stop" {
			t.Fatalf("entries of %s: %v, %v", found[i].File, all, err)
		}
		err = found[i].Decode(all[0].Value, &v)
		if err != nil != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("decoding that of %s: %v, want %q", found[i].File, err, want)
		}
	}
	if v.A != 1 {
		t.Errorf("decoded %d, want 1", v.A)
	}
	if got := found[1].Errorf(found[1].Node, "no").Error(); got != "muster.yaml:3:3: no" {
		t.Errorf("the place of a section is %q", got)
	}
}

// What a few lines of a section could make large is refused with its place.
func TestSectionsHaveNoAliases(t *testing.T) {
	for text, want := range map[string]string{
		"hooks:\n  A: &x [1, 1]\n  B: [*x, *x]\n": "muster.yaml:3:7: hooks may not have anchors and aliases",
		"hooks: &x\n  A: 1\n":                     "muster.yaml:1:8: hooks may not have anchors and aliases",
		"hooks: " + strings.Repeat("[", 100):      "lie deeper in each other",
		"hoks:\n  A: 1\n":                         `there is no setting "hoks" (did you mean hooks?)`,
		"hooks: 3\n":                              "",
	} {
		s, _, err := Load(place(t, text, ""))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
			continue
		}
		if _, err := s.Sections[0].Entries(); err == nil || !strings.HasPrefix(err.Error(), "muster.yaml:1:8: ") {
			t.Errorf("%q has entries: %v", text, err)
		}
	}
}

// TestLimitsHaveTheDefaultsOfTheTable: a field that is set stays, and the others get what the files would have.
func TestLimitsHaveTheDefaultsOfTheTable(t *testing.T) {
	got := Limits{SubagentTurns: 3, IdleTimeout: -1}.WithDefaults()
	if got.SubagentTurns != 3 || got.IdleTimeout != -1 || got.BashTimeout != 2*time.Minute {
		t.Errorf("%+v", got)
	}
}
