package toolsettings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// What is no credential stays, in a form that its tool can read. Nothing of a credential does.
func TestClean(t *testing.T) {
	for _, c := range []struct {
		format, text string
		want         string // what stays; "" where the file is left out
	}{
		{"text", "@corp:registry=https://npm.corp/\n//npm.corp/:_authToken=S3cretValue\n//npm.corp/:_password=\"UzNjcmV0\"\n" +
			"//npm.corp/:username=ann\nalways-auth=true\n_auth = UzNjcmV0OlMz\n//x/:_authToken=${NPM_TOKEN}\n; old token S3cretValue\n",
			"@corp:registry=https://npm.corp/\n//npm.corp/:username=ann\nalways-auth=true\n"},
		{"text", "[global]\nindex-url = https://ann:S3cretValue@pypi.corp/simple\nextra-index-url =\n    https://S3cretValue@pypi.corp/b\ntimeout = 60\n",
			"[global]\nindex-url = https://pypi.corp/simple\nextra-index-url =\n    https://pypi.corp/b\ntimeout = 60\n"},
		{"text", "corpUser=ann\ncorpPassword=S3cretValue\norg.gradle.parallel=true\nossrhToken = S3cretValue\n", "corpUser=ann\norg.gradle.parallel=true\n"},
		{"text", "key=-----BEGIN PRIVATE KEY-----\nS3cretValue\n-----END PRIVATE KEY-----\ncafile=/etc/ca.pem\n", "cafile=/etc/ca.pem\n"},
		{"text", "GOPROXY=https://ann:S3cretValue@go.corp,direct\nGOPRIVATE=corp.example\n", "GOPROXY=https://go.corp,direct\nGOPRIVATE=corp.example\n"},
		{"toml", "[registries.corp]\nindex = \"sparse+https://cargo.corp/\"\ntoken = \"S3cretValue\"\n[source.crates-io]\nreplace-with = \"corp\"\n" +
			"[registry]\nglobal-credential-providers = [\n \"cargo:token\",\n]\n",
			"[registries]\n  [registries.corp]\n    index = \"sparse+https://cargo.corp/\"\n\n[registry]\n  global-credential-providers = []\n\n" +
				"[source]\n  [source.crates-io]\n    replace-with = \"corp\"\n"},
		{"toml", "[install.scopes]\n\"@corp\" = { token = \"S3cretValue\", url = \"https://npm.corp/\" }\n",
			"[install]\n  [install.scopes]\n    [install.scopes.\"@corp\"]\n      url = \"https://npm.corp/\"\n"},
		{"toml", "[[index]]\nname = \"corp\"\nurl = \"https://ann:S3cretValue@pypi.corp/simple\"\n", "[[index]]\n  name = \"corp\"\n  url = \"https://pypi.corp/simple\"\n"},
		{"yaml", "npmScopes:\n  corp:\n    npmRegistryServer: https://npm.corp\n    npmAuthToken: S3cretValue\n    npmAuthIdent: ann:S3cretValue\n",
			"npmScopes:\n  corp:\n    npmRegistryServer: https://npm.corp\n"},
		{"yaml", "channels:\n  - https://conda.corp/t/S3cretValue/main\n  - defaults\n", "channels:\n- https://conda.corp/main\n- defaults\n"},
		{"yaml", "---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://gems.corp\"\nBUNDLE_GEMS__CORP: \"ann:S3cretValue\"\n",
			"BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: https://gems.corp\n"},
		{"json", `{"repositories":[{"type":"composer","url":"https://p.corp"}],"http-basic":{"p.corp":{"username":"ann","password":"S3cretValue"}}}`,
			`{"http-basic":{"p.corp":{"username":"ann"}},"repositories":[{"type":"composer","url":"https://p.corp"}]}`},
		{"xml", "<?xml version=\"1.0\"?>\n<settings xmlns=\"http://m/1.0\" xmlns:xsi=\"http://x\" xsi:schemaLocation=\"a b\"><!-- S3cretValue --><servers><server>" +
			"<password>S3cretValue</password></server></servers><mirrors><mirror><url>https://m.corp/a</url></mirror></mirrors></settings>",
			"<?xml version=\"1.0\"?>\n<settings xmlns=\"http://m/1.0\" xmlns:xsi=\"http://x\" xsi:schemaLocation=\"a b\">" +
				"<mirrors><mirror><url>https://m.corp/a</url></mirror></mirrors></settings>"},
		{"xml", "<configuration><config><add key=\"http_proxy.password\" value=\"S3cretValue\" /></config><packageSources><add key=\"corp\" value=\"https://n.corp/v3\" /></packageSources><packageSourceCredentials><corp>" +
			"<add key=\"ClearTextPassword\" value=\"S3cretValue\" /></corp></packageSourceCredentials></configuration>",
			"<configuration><config></config><packageSources><add key=\"corp\" value=\"https://n.corp/v3\"></add></packageSources></configuration>"},
		{"code", "allprojects { repositories { maven { url 'https://m.corp' } } }\n", "allprojects { repositories { maven { url 'https://m.corp' } } }\n"},
		{"code", "credentials { username 'ann'; password 'S3cretValue' }\n", ""},
		{"toml", "not TOML S3cretValue", ""}, {"xml", "<a></b>", ""}, {"json", "[", ""},
	} {
		got, _, ok := clean(c.format, []byte(c.text))
		if ok != (c.want != "") || ok && string(got) != c.want {
			t.Errorf("of\n%s\nthere stays, %v:\n%s\nwant\n%s", c.text, ok, got, c.want)
		}
	}
}

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
	want := []string{other + "/cargo/config.toml:[net]\noffline = true\n", other + "/config/go/env:GOPROXY=https://go.corp\n",
		other + "/pip.conf:[global]\n", home + "/.npmrc:registry=https://npm.corp/\n"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("found\n%q\nwant\n%q", got, want)
	}
}

// direnv may use all directories of a sandbox, whatever else the user's settings say.
func TestDirenv(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(home+"/.config/direnv", 0o755))
	for _, c := range [][2]string{
		{"", "[whitelist]\n  prefix = [\"/\"]\n"},
		{"[global]\nwarn_timeout = \"0s\"\n[whitelist]\nprefix = [\"/home/ann/work\"]\n", "[global]\n  warn_timeout = \"0s\"\n\n[whitelist]\n  prefix = [\"/\"]\n"},
		{"no TOML", "[whitelist]\n  prefix = [\"/\"]\n"},
	} {
		require.NoError(t, os.WriteFile(home+"/.config/direnv/direnv.toml", []byte(c[0]), 0o600))
		f, err := Direnv(home, nil)
		if string(f.Text) != c[1] || err != nil || f.Path != home+"/.config/direnv/direnv.toml" {
			t.Errorf("of %q: %s, %v at %s", c[0], f.Text, err, f.Path)
		}
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

// What "go env -w" has written counts where the environment says nothing.
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
