package toolchains

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	os.Exit(m.Run())
}

// toolchainFiles are what users keep in odd places, below a directory. HOME leads to home.
var toolchainFiles = strings.Fields(`
	home/.ssh/id home/.cargo/bin/cargo home/.cargo/registry/x home/.cargo/credentials.toml home/.gem/credentials
	home/.gem/ruby/3/x home/.m2/settings.xml home/.m2/repository/x home/.npmrc home/go/pkg/mod/x home/go/src/own/.git/HEAD
	home/.local/bin/x home/.local/share/keyrings/x home/.local/lib/x home/.config/nvm/nvm.sh home/.config/nvm/.git/HEAD
	home/.config/gh/bin/x home/.config/gh/lib/x home/.config/gh/hosts.yml home/.pulumi/bin/x home/.pulumi/lib/x
	home/.pulumi/credentials.json home/.pyenv/.git/HEAD home/.pyenv/bin/pyenv home/.pyenv/plugins/virtualenv/.git/HEAD
	home/flutter/.git/HEAD home/flutter/bin/flutter home/flutter/packages/x home/node/bin/node home/node/lib/x home/bin/x
	home/project/.git/HEAD home/project/bin/x home/project/lib/secret home/project/.venv/bin/python home/project/.venv/pyvenv.cfg
	home/project/.venv/lib/x home/project/.venv/secret home/project/venv/bin/python home/project/venv/pyvenv.cfg home/.local/share/rustup/toolchains/x
	other/bin/x other/lib/x other/.ssh/id srv/bin/x srv/lib/x srv/a/b/repo/.git/HEAD srv/a/b/repo/secret
	bare/bin/x bare/share/x bare/git/HEAD bare/git/objects/x bare/git/refs/x
	fork/.git/HEAD fork/bin/x fork/lib/x fork/vcpkg/x fork/go/x asdf/bin/asdf asdf/shims/x asdf/plugins/nodejs/.git/HEAD asdf/installs/x fvm/3.1/.git/HEAD fvm/3.1/bin/flutter
	fvm/3.1/packages/x jdk/17/bin/java jdk/17/lib/x jdk/17/conf/x plain/bin/x plain/private state/.team/bin/x state/.team/lib/x
	cargo/bin/x cargo/registry/x cargo/credentials.toml pnpm/x/package.json pnpm/.bin/x
	home/.npm-global/bin/x home/.npm-global/lib/node_modules/x home/.npm-global/.npmrc home/tools/x home/opt/tool/bin/run
	home/opt/tool/lib/x home/notes/script home/notes/plain clone/.git/HEAD clone/vcpkg clone/bin/x home/.config/app/secrets home/private/bin/run home/private/share/x`)

// A directory of PATH shows itself and its installation, and never a home, settings, keys, the state or a repository
// other than a toolchain's own clone. Variables show no more. This holds by whatever name a directory is reached.
func TestRules(t *testing.T) {
	base := t.TempDir()
	writeFiles(t, base)
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, errors.Join(os.Symlink("home", at("alias")), os.Symlink("17", at("jdk/current")),
		os.Symlink(at("home/node/bin"), at("nodebin")), os.Symlink(at("other"), at("innocent")), os.Mkdir(at("sticky"), 0o777),
		os.Chmod(at("sticky"), 0o777|os.ModeSticky), os.MkdirAll(at("sticky/bin"), 0o755), os.Mkdir(at("sticky/lib"), 0o755),
		os.Symlink("../opt/tool/bin/run", at("home/tools/run")), os.Symlink("../notes/script", at("home/tools/script")),
		os.Symlink("../notes/plain", at("home/tools/plain")), os.Symlink("/usr/bin/env", at("home/tools/env")),
		os.Symlink("../.ssh/id", at("home/tools/id")), os.Symlink("../project/bin/x", at("home/tools/own")), os.Symlink("../opt", at("home/tools/opt")),
		os.Symlink("../.config/gh", at("home/project/out")), os.Symlink("bin", at("home/project/in")),
		os.Symlink("../../.config/app/secrets", at("home/project/venv/lib")),
		os.Symlink("../.config/app/secrets", at("home/tools/app")), os.Symlink("../../private/bin/run", at("home/project/bin/run")), os.Symlink(at("home/private/bin/run"), at("clone/bin/run")),
		os.Chmod(at("home/.config/app/secrets"), 0o755), os.Chmod(at("home/private/bin/run"), 0o755),
		os.Chmod(at("home/opt/tool/bin/run"), 0o755), os.Chmod(at("home/notes/script"), 0o755), os.Chmod(at("home/.ssh/id"), 0o755),
		os.Chmod(at("home/project/bin/x"), 0o755)))
	known := ".cargo/bin .cargo/registry .gem/ruby .local/bin .local/lib .m2/repository .pyenv go/pkg"
	for _, c := range []struct{ env, want string }{
		{"PATH=$/home/bin:relative/bin:", "home/bin"},
		{"PATH=$/alias/bin", "alias/bin"},
		{"PATH=$/home", ""}, {"PATH=$", ""}, {"PATH=/", ""},
		{"PATH=$/alias:$/innocent", ""},
		{"PATH=$/home/node/bin", "home/node/bin home/node"},
		{"PATH=$/nodebin", "nodebin home/node"},
		{"PATH=$/jdk/current/bin", "jdk/current/bin jdk/current jdk/17"},
		{"PATH=$/home/flutter/bin:$/fvm/3.1/bin", "home/flutter/bin home/flutter fvm/3.1/bin fvm/3.1"},
		{"PATH=$/home/.pyenv/bin", "home/.pyenv/bin"},
		{"PATH=$/asdf/shims", "asdf/shims asdf"},
		{"PATH=$/home/.local/bin", "home/.local/bin home/.local/lib"},
		{"PATH=$/home/.pulumi/bin", "home/.pulumi/bin home/.pulumi/lib"},
		{"PATH=$/home/.config/gh/bin", "home/.config/gh/bin home/.config/gh/lib"},
		{"PATH=$/home/.npm-global/bin", "home/.npm-global/bin home/.npm-global/lib"},
		{"PATH=$/home/tools", "home/tools home/project/bin/x home/opt/tool/bin/run home/opt/tool home/notes/script"},
		{"PATH=$/home/.ssh:$/alias/.ssh", ""},
		{"PATH=$/other/bin", "other/bin"}, {"PATH=$/innocent/bin", "innocent/bin"},
		{"PATH=$/srv/bin", "srv/bin"}, {"PATH=$/srv", ""}, {"PATH=$/bare/bin", "bare/bin"},
		{"PATH=$/home/project/bin", "home/project/bin"}, {"PATH=$/home/project", ""},
		{"PATH=$/home/project/.venv/bin", "home/project/.venv/bin home/project/.venv/pyvenv.cfg home/project/.venv/lib"},
		{"PATH=$/home/project/out", ""}, {"PATH=$/home/project/in", "home/project/in"},
		{"PATH=$/home/project/venv/bin", "home/project/venv/bin home/project/venv/pyvenv.cfg"},
		{"PATH=$/fork/bin", "fork/bin"}, {"PATH=$/clone/bin", "clone/bin"},
		{"PATH=$/plain/bin", "plain/bin"},
		{"PATH=$/pnpm/.bin", "pnpm/.bin pnpm"},
		{"PATH=$/state/.team/bin:$/state", ""},
		{"PATH=$/sticky/bin:$/sticky", "sticky/bin"},
		{"JAVA_HOME=$/jdk/current", "jdk/current"}, {"JAVA_HOME=../j", ""}, {"GOROOT", ""}, {"SECRETS=$/jdk", ""},
		{"GOPATH=$/home/go:$/plain", "home/go/pkg plain/bin"},
		{"CARGO_HOME=$/cargo", "cargo/bin cargo/registry"},
		{"PYTHONPATH=$/home/project:$/home/project/lib:$/other:$/srv:$/home:$/jdk/17/lib", "jdk/17/lib"},
		{"NODE_PATH=$/innocent:$/alias/.ssh:$/alias/.config:$/home/.pulumi:$/home/.config/gh", ""},
		{"NVM_DIR=$/home/.config/nvm", "home/.config/nvm"}, {"RUSTUP_HOME=$/alias/.local/share/rustup", "alias/.local/share/rustup"},
		{"PYENV_ROOT=$/home/.config/gh", ""},
	} {
		env := []string{strings.ReplaceAll(c.env, "$", base)}
		for _, home := range []string{"home", "alias"} {
			want := sandbox.Rules{{Path: at(home), Access: sandbox.Empty}}
			for _, name := range strings.Fields(known) {
				want = append(want, sandbox.Rule{Path: at(home + "/" + name)})
			}
			for _, name := range strings.Fields(c.want) {
				want = append(want, sandbox.Rule{Path: at(name)})
			}
			if got := Rules(env, at(home), at("state/.team")); !slices.Equal(got, want) {
				t.Errorf("%s with %s:\n%+v\nwant\n%+v", c.env, home, got, want)
			}
		}
	}
	for _, home := range []string{"", "/", "relative"} {
		if r := Rules(nil, home); r != nil {
			t.Errorf("the home directory %q: %v", home, r)
		}
	}
}

// A program finds its tools, and no key, by each name of the home directory.
func TestHome(t *testing.T) {
	base := t.TempDir()
	writeFiles(t, base)
	require.NoError(t, os.Symlink("home", filepath.Join(base, "alias")))
	env := []string{"PATH=" + base + "/alias/node/bin:" + base + "/other/bin:" + base + "/home/bin", "CARGO_HOME=" + base + "/home/.cargo"}
	without := t.TempDir() // no bubblewrap
	require.NoError(t, os.WriteFile(filepath.Join(without, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	l := require.Value(proc.New(t.Context()))(t)
	defer l.Close()
	for _, path := range []string{os.Getenv("PATH"), without} {
		m, err := sandbox.Find(t.Context(), []string{"PATH=" + path})
		if err != nil {
			tier.Missing(t, err.Error())
		}
		var out strings.Builder
		p := require.Value(m.Start(t.Context(), l, proc.Spec{Argv: []string{"/bin/sh", "-c", "cd " + base + `
for f in ` + strings.Join(toolchainFiles, " ") + ` alias/node/lib/x alias/.ssh/id; do cat $f >/dev/null 2>&1 && echo $f; done; cat /var/run/* 2>/dev/null; true`},
			Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Out: &out}, slices.Concat(sandbox.System(), Rules(env, base+"/alias"))))(t)
		require.Value(p.Wait())(t)
		want := `home/.cargo/bin/cargo home/.cargo/registry/x home/.gem/ruby/3/x home/.m2/repository/x home/go/pkg/mod/x
home/.local/bin/x home/.local/lib/x home/.pyenv/.git/HEAD home/.pyenv/bin/pyenv home/.pyenv/plugins/virtualenv/.git/HEAD
home/node/bin/node home/node/lib/x home/bin/x other/bin/x alias/node/lib/x`
		if !slices.Equal(strings.Fields(out.String()), strings.Fields(want)) {
			t.Errorf("%s: it reads\n%s", m.Name, out.String())
		}
	}
}

// writeFiles makes toolchainFiles below a directory.
func writeFiles(t *testing.T, base string) {
	t.Helper()
	for _, name := range toolchainFiles {
		path := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(filepath.Base(name)), 0o600))
	}
}

// A home directory has links to what rules show.
func TestWithHome(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".cargo/bin"), 0o755))
	run := func(argv ...string) string {
		argv = WithHome(argv, home, sandbox.Rules{{Path: home + "/.cargo/bin"}, {Path: home + "/.npmrc", From: home + "/copy"}, {Path: home, Access: sandbox.Empty},
			{Path: home + "/.cargo/bin/x"}, {Path: "/usr"}, {Path: home + "/.ssh", Access: sandbox.Empty}})
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.Env = home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")}
		return string(require.Value(c.CombinedOutput())(t))
	}
	for range 2 { // the second time it is there already
		if out := run("printf", "%s|", "a b", "$HOME"); !strings.HasSuffix(out, "a b|$HOME|") {
			t.Errorf("the program says %q", out)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "home/.npmrc")); to != home+"/copy" {
		t.Errorf("what is seen instead: %s, %v", to, err)
	}
	all, _ := os.ReadDir(filepath.Join(dir, "home")) // of what the user has
	if to, err := os.Readlink(filepath.Join(dir, "home/.cargo/bin")); to != home+"/.cargo/bin" || len(all) != 2 {
		t.Errorf("leads to %q, %v, beside %v", to, err, all)
	}
}
