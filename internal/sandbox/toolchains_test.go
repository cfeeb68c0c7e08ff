package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// toolchainFiles are what users keep in odd places, below a directory. HOME leads to home.
var toolchainFiles = strings.Fields(`
	home/.ssh/id home/.cargo/bin/cargo home/.cargo/registry/x home/.cargo/credentials.toml home/.gem/credentials
	home/.gem/ruby/3/x home/.m2/settings.xml home/.m2/repository/x home/.npmrc home/go/pkg/mod/x home/go/src/own/.git/HEAD
	home/.local/bin/x home/.local/share/keyrings/x home/.local/lib/x home/.config/nvm/nvm.sh home/.config/nvm/.git/HEAD
	home/.config/gh/bin/x home/.config/gh/lib/x home/.config/gh/hosts.yml home/.pulumi/bin/x home/.pulumi/lib/x
	home/.pulumi/credentials.json home/.pyenv/.git/HEAD home/.pyenv/bin/pyenv home/.pyenv/plugins/virtualenv/.git/HEAD
	home/flutter/.git/HEAD home/flutter/bin/flutter home/flutter/packages/x home/node/bin/node home/node/lib/x home/bin/x
	home/project/.git/HEAD home/project/bin/x home/project/lib/secret home/project/.venv/bin/python home/project/.venv/pyvenv.cfg
	home/project/.venv/lib/x home/project/.venv/secret home/.local/share/rustup/toolchains/x
	other/bin/x other/lib/x other/.ssh/id srv/bin/x srv/lib/x srv/a/b/repo/.git/HEAD srv/a/b/repo/secret
	bare/bin/x bare/share/x bare/git/HEAD bare/git/objects/x bare/git/refs/x
	fork/.git/HEAD fork/bin/x fork/lib/x fork/vcpkg/x fork/go/x asdf/bin/asdf asdf/shims/x asdf/plugins/nodejs/.git/HEAD asdf/installs/x fvm/3.1/.git/HEAD fvm/3.1/bin/flutter
	fvm/3.1/packages/x jdk/17/bin/java jdk/17/lib/x jdk/17/conf/x plain/bin/x plain/private state/.team/bin/x state/.team/lib/x
	cargo/bin/x cargo/registry/x cargo/credentials.toml pnpm/x/package.json pnpm/.bin/x
	home/.npm-global/bin/x home/.npm-global/lib/node_modules/x home/.npm-global/.npmrc home/tools/x home/opt/tool/bin/run
	home/opt/tool/lib/x home/notes/script home/notes/plain`)

// A directory of PATH shows itself and its installation, and never a home, settings, keys, the state or a repository
// other than a toolchain's own clone. Variables show no more. This holds by whatever name a directory is reached.
func TestToolchains(t *testing.T) {
	base := t.TempDir()
	write(t, base, filepath.Base, toolchainFiles...)
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, errors.Join(os.Symlink("home", at("alias")), os.Symlink("17", at("jdk/current")),
		os.Symlink(at("home/node/bin"), at("nodebin")), os.Symlink(at("other"), at("innocent")), os.Mkdir(at("sticky"), 0o777),
		os.Chmod(at("sticky"), 0o777|os.ModeSticky), os.MkdirAll(at("sticky/bin"), 0o755), os.Mkdir(at("sticky/lib"), 0o755),
		os.Symlink("../opt/tool/bin/run", at("home/tools/run")), os.Symlink("../notes/script", at("home/tools/script")),
		os.Symlink("../notes/plain", at("home/tools/plain")), os.Symlink("/usr/bin/env", at("home/tools/env")),
		os.Symlink("../.ssh/id", at("home/tools/id")), os.Symlink("../project/bin/x", at("home/tools/own")), os.Symlink("../opt", at("home/tools/opt")),
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
		{"PATH=$/fork/bin", "fork/bin"},
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
			want := Rules{{Path: at(home), Access: Empty}}
			for _, name := range strings.Fields(known) {
				want = append(want, Rule{Path: at(home + "/" + name)})
			}
			for _, name := range strings.Fields(c.want) {
				want = append(want, Rule{Path: at(name)})
			}
			if got := Toolchains(env, at(home), at("state/.team")); !slices.Equal(got, want) {
				t.Errorf("%s with %s:\n%+v\nwant\n%+v", c.env, home, got, want)
			}
		}
	}
	for _, home := range []string{"", "/", "relative"} {
		if r := Toolchains(nil, home); r != nil {
			t.Errorf("the home directory %q: %v", home, r)
		}
	}
}

// A program finds its tools, and no key, by each name of the home directory.
func TestHome(t *testing.T) {
	m, l := findNamespaces(t)
	base := t.TempDir()
	write(t, base, filepath.Base, toolchainFiles...)
	require.NoError(t, os.Symlink("home", filepath.Join(base, "alias")))
	env := []string{"PATH=" + base + "/alias/node/bin:" + base + "/other/bin:" + base + "/home/bin", "CARGO_HOME=" + base + "/home/.cargo"}
	for name, m := range map[string]*Method{"bubblewrap": m, "Landlock": findLandlocked(t)} {
		got := run(t, m, l, slices.Concat(System(), Toolchains(env, base+"/alias")), "cd "+base+`
for f in `+strings.Join(toolchainFiles, " ")+` alias/node/lib/x alias/.ssh/id; do cat $f >/dev/null 2>&1 && echo $f; done; cat /var/run/* 2>/dev/null; true`)
		want := `home/.cargo/bin/cargo home/.cargo/registry/x home/.gem/ruby/3/x home/.m2/repository/x home/go/pkg/mod/x
home/.local/bin/x home/.local/lib/x home/.pyenv/.git/HEAD home/.pyenv/bin/pyenv home/.pyenv/plugins/virtualenv/.git/HEAD
home/node/bin/node home/node/lib/x home/bin/x other/bin/x alias/node/lib/x`
		if !slices.Equal(strings.Fields(got), strings.Fields(want)) {
			t.Errorf("%s: it reads\n%s", name, got)
		}
	}
}

// What only its owner and a group may read is hidden, by its mode. Many such files hide their directory.
func TestPrivate(t *testing.T) {
	base := t.TempDir()
	write(t, base, filepath.Base, "public/x", "public/key", "public/group", "closed/x", "entered/x", "entered/key")
	var many []string
	for i := range maxPrivate + 1 {
		many = append(many, "many/"+strings.Repeat("x", i+1))
	}
	write(t, base, filepath.Base, many...)
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, errors.Join(os.Chmod(at("public/x"), 0o644), os.Chmod(at("public/group"), 0o640), os.Chmod(at("closed"), 0o750),
		os.Chmod(at("entered"), 0o711), os.Chmod(at("entered/x"), 0o644), os.Symlink(at("public/key"), at("public/link"))))
	pipe := exec.Command("mkfifo", "-m", "600", at("public/pipe"))
	require.NoError(t, pipe.Run())
	r := privateIn([]string{base, at("none")}, 0)
	slices.SortFunc(r, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	want := Rules{{Path: at("closed"), Access: Empty}, {Path: at("entered/key"), Access: Masked}, {Path: at("many"), Access: Empty},
		{Path: at("public/group"), Access: Masked}, {Path: at("public/key"), Access: Masked}, {Path: at("public/pipe"), Access: Masked}}
	if !slices.Equal(r, want) {
		t.Errorf("root: %+v", r)
	}
	if r := privateIn([]string{base}, 1); os.Geteuid() == 0 && len(r) != len(want)-1 { // a pipe is not tried
		t.Errorf("what a group lets a user read: %+v", r)
	}
}
