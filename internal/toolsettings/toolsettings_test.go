package toolsettings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// Files are found where variables say that they are, and keep their text where it has no credential.
func TestFind(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(home+"/dotfiles/npmrc", "registry=https://ann:S3cretValue@npm.corp/\n")
	require.NoError(t, os.Symlink("dotfiles/npmrc", home+"/.npmrc"))
	write(home+"/.cargo/config.toml", "[net]\n")
	write(other+"/cargo/config.toml", "[net]\noffline = true\n")
	write(other+"/pip.conf", "[global]\n")
	write(other+"/config/go/env", "GOPROXY=https://go.corp\n")
	require.NoError(t, os.Mkdir(home+"/.yarnrc", 0o755))
	env := []string{"CARGO_HOME=" + other + "/cargo", "PIP_CONFIG_FILE=" + other + "/pip.conf", "XDG_CONFIG_HOME=" + other + "/config", "UV_CONFIG_FILE=relative"}
	var got []string
	for _, f := range Find(home, env) {
		got = append(got, f.Path+":"+string(f.Text))
	}
	want := []string{other + "/cargo/config.toml:[net]\n  offline = true\n", other + "/config/go/env:GOPROXY=https://go.corp\n",
		other + "/pip.conf:[global]\n", home + "/.npmrc:registry=https://npm.corp/\n"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("found\n%q\nwant\n%q", got, want)
	}
}

// mise trusts the checkout besides what the user has named.
func TestEnviron(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(home+"/.cache/ms-playwright", 0o755))
	for _, c := range [][2]string{
		{"X=1", "MISE_TRUSTED_CONFIG_PATHS=/lane PLAYWRIGHT_BROWSERS_PATH=" + home + "/.cache/ms-playwright"},
		{"MISE_TRUSTED_CONFIG_PATHS=/a:/b PLAYWRIGHT_BROWSERS_PATH=0", "MISE_TRUSTED_CONFIG_PATHS=/a:/b:/lane"},
	} {
		if got := strings.Join(Environ(home, strings.Fields(c[0]), "/lane"), " "); got != c[1] {
			t.Errorf("with %s: %s", c[0], got)
		}
	}
}

// A variable that is not in the environment comes from the file of "go env -w".
func TestGoVariable(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(home+"/.config/go", 0o755))
	require.NoError(t, os.WriteFile(home+"/.config/go/env", []byte("GOPATH=/gocode\nGOPROXY=https://ann:S3cretValue@go.corp,direct\n"), 0o600))
	require.NoError(t, os.WriteFile(home+"/other", []byte("GOPROXY=off\n"), 0o600))
	for _, c := range [][3]string{{"", "GOPROXY", "https://go.corp,direct"}, {"GOPROXY=direct", "GOPROXY", "direct"},
		{"GOENV=" + home + "/other", "GOPROXY", "off"}, {"", "GOPATH", "/gocode"}, {"", "PATH", ""}} {
		if got := GoVariable(home, []string{c[0]}, c[1]); got != c[2] {
			t.Errorf("with %q: %s is %q", c[0], c[1], got)
		}
	}
}
