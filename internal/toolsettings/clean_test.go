package toolsettings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// What is known to be no credential stays, in a form that its tool can read. All else is left out.
func TestFilesWithoutCredentials(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // what stays
	}{
		{".npmrc", "@corp:registry=https://npm.corp/\nregistry = https://ann:S3cret@npm.corp/\n//npm.corp/:_authToken=S3cret\n//npm.corp/:_auth=S3cret\n_auth=\n  S3cret\n" +
			"//npm.corp/:_password=\"UzNjcmV0\"\n//npm.corp/:username=ann\nalways-auth=true\n; old S3cret\nhttps-proxy=ann:S3cret@proxy:80\nemail=S3cret\n//x/:_authToken=${NPM_TOKEN}\n" +
			"key=-----BEGIN PRIVATE KEY-----\\nS3cret\n",
			"@corp:registry=https://npm.corp/\nregistry = https://npm.corp/\nalways-auth=true\nhttps-proxy=proxy:80\n"},
		{".yarnrc", "registry \"https://ann:S3cret@y.corp\"\n\"@corp:registry\" \"https://y.corp\"\n\"//h/:_authToken\" S3cret\n", "registry \"https://y.corp\"\n\"@corp:registry\" \"https://y.corp\"\n"},
		{".yarnrc.yml", "npmScopes:\n  corp:\n    npmRegistryServer: https://npm.corp\n    npmAuthToken: S3cret\n    npmAuthIdent: ann:S3cret\n",
			"npmScopes:\n  corp:\n    npmRegistryServer: https://npm.corp\n"},
		{".config/pip/pip.conf", "[global]\nindex-url = https://ann:S3cret@pypi.corp/simple\nextra-index-url =\n    https://S3cret@pypi.corp/b\n    https://pypi.corp/c?x=1\ntimeout: 60\n" +
			"proxy = ann:S3cret@host:80\npassword = S3cret\n",
			"[global]\nindex-url = https://pypi.corp/simple\nextra-index-url =\n    https://pypi.corp/b\n    https://pypi.corp/c?x=1\ntimeout: 60\nproxy = host:80\n"},
		{".gradle/gradle.properties", "corpUser=ann\ncorpPassword=S3cret\nnexusPass=S3cret\nmyToken:S3cret\nmyPassword S3cret\norg.gradle.parallel=true\nandroid.injected.signing.key.password=S3cret\n" +
			"systemProp.https.proxyHost=proxy\nsystemProp.https.proxyPassword=S3cret\norg.gradle.jvmargs=-Dpw=S3cret\n", "org.gradle.parallel=true\nsystemProp.https.proxyHost=proxy\n"},
		{".config/go/env", "GOPROXY=https://ann:S3cret@go.corp,direct\nGOPRIVATE=corp.example\nGOAUTH=get S3cret\nOTHER=S3cret\n", "GOPROXY=https://go.corp,direct\nGOPRIVATE=corp.example\n"},
		{".cargo/config.toml", "[registries.corp]\nindex = \"sparse+https://cargo.corp/\"\ntoken = \"S3cret\"\n[source.crates-io]\nreplace-with = \"corp\"\n[http]\nproxy = \"ann:S3cret@host\"\n" +
			"[env]\nC = { value = \"S3cret\" }\nD = \"S3cret\"\n[alias]\nx = \"S3cret\"\n",
			"[http]\n  proxy = \"host\"\n\n[registries]\n  [registries.corp]\n    index = \"sparse+https://cargo.corp/\"\n\n[source]\n  [source.crates-io]\n    replace-with = \"corp\"\n"},
		{".bunfig.toml", "[install.scopes]\n\"@corp\" = { token = \"S3cret\", url = \"https://npm.corp/\" }\n", "[install]\n  [install.scopes]\n    [install.scopes.\"@corp\"]\n      url = \"https://npm.corp/\"\n"},
		{".config/uv/uv.toml", "[[index]]\nname = \"corp\"\nurl = \"https://ann:S3cret@pypi.corp/simple\"\n", "[[index]]\n  name = \"corp\"\n  url = \"https://pypi.corp/simple\"\n"},
		{".config/mise/config.toml", "[tools]\nnode = \"20\"\npython = [\"3.12\", \"3.11\"]\n[env]\nCORP_PAT = \"S3cret\"\nSTRIPE_SK = \"S3cret\"\n", "[tools]\n  node = \"20\"\n  python = [\"3.12\", \"3.11\"]\n"},
		{".condarc", "channels:\n  - https://conda.corp/t/S3cret/main\n  - https://conda.corp/t/S3cret\n  - defaults\n", "channels:\n- https://conda.corp/main\n- https://conda.corp\n- defaults\n"},
		{".bundle/config", "---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://gems.corp\"\nBUNDLE_GEMS__CONTRIBSYS__COM: \"id:S3cret\"\n", "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: https://gems.corp\n"},
		{".gemrc", ":sources:\n- https://ann:S3cret@gems.corp\n:rubygems_api_key: S3cret\n", ":sources:\n- https://gems.corp\n"},
		{".config/composer/config.json", `{"repositories":[{"type":"composer","url":"https://p.corp"}],"http-basic":{"p.corp":{"username":"ann","password":"S3cret"}},"github-oauth":{"github.com":"S3cret"},"bearer":{"a":"S3cret"}}`,
			`{"repositories":[{"type":"composer","url":"https://p.corp"}]}`},
		{".m2/settings.xml", "<?xml version=\"1.0\"?>\n<settings xmlns=\"http://m/1.0\" xmlns:xsi=\"http://x\" xsi:schemaLocation=\"a b\"><!-- S3cret --><servers><server><id>a</id>" +
			"<password>S3cret</password></server></servers><mirrors><mirror><url>https://ann:S3cret@m.corp/a</url></mirror></mirrors><proxies><proxy><host>p</host><password>S3cret</password></proxy></proxies>" +
			"<profiles><profile><properties><sonar.login>S3cret</sonar.login></properties></profile></profiles></settings>",
			"<?xml version=\"1.0\"?>\n<settings xmlns=\"http://m/1.0\" xmlns:xsi=\"http://x\" xsi:schemaLocation=\"a b\"><mirrors><mirror><url>https://m.corp/a</url></mirror></mirrors>" +
				"<proxies><proxy><host>p</host></proxy></proxies><profiles><profile></profile></profiles></settings>"},
		{".nuget/NuGet/NuGet.Config", "<configuration><config><add key=\"http_proxy.password\" value=\"S3cret\" /></config><packageSources><add key=\"corp\" value=\"https://n.corp/v3\" /></packageSources>" +
			"<packageSourceCredentials><corp><add key=\"ClearTextPassword\" value=\"S3cret\" /></corp></packageSourceCredentials></configuration>",
			"<configuration><packageSources><add key=\"corp\" value=\"https://n.corp/v3\"></add></packageSources></configuration>"},
		{".sbt/repositories", "[repositories]\n  local\n  nexus: https://ann:S3cret@n.corp/releases\n", "[repositories]\n  local\n  nexus: https://n.corp/releases\n"},
		// A key that is kept in one file, or at one place, is not kept in another.
		{".gradle/gradle.properties", "googleMapsApiKey=S3cret\nname=S3cret\nurl=S3cret\n  org.gradle.parallel=true\n    hook=https://hooks.example/S3cret\n", "  org.gradle.parallel=true\n"},
		{".config/composer/config.json", `{"bearer":{"packagist.org":"S3cret"},"config":{"url":"S3cret","cafile":"/ca"},"repositories":{"corp":{"url":"https://p.corp","options":{"url":"S3cret"}},"packagist.org":false}}`,
			`{"config":{"cafile":"/ca"},"repositories":{"corp":{"url":"https://p.corp"},"packagist.org":false}}`},
		{".config/mise/config.toml", "[tools]\nnode = {version = \"22\", install_env = {X_TOKEN = \"S3cret\"}}\n[env]\nversion = \"S3cret\"\n", "[tools]\n  [tools.node]\n    version = \"22\"\n"},
		{".npmrc", "[x]\n  default=S3cret\nname=S3cret\n//h/:registry=S3cret\n", "[x]\n"},
		{".config/pip/pip.conf", "[global]\n    disable_pip_version_check = true\n    index-url = https://mirror/\n    password = S3cret\n        https://S3cret/x\n",
			"[global]\n    disable_pip_version_check = true\n    index-url = https://mirror/\n"},
		{".npmrc", "registry=https://dl.corp/S3cretS3cretS3cret/npm/\n@a:registry=https://h/?token=S3cretS3cretS3cret\n@b:registry=https://artifacts-2024.corp/api/npm/npm-remote/\nproxy=ann:p@S3cret@host:80\nhttps-proxy=ann:S3'cret@host\n",
			"@b:registry=https://artifacts-2024.corp/api/npm/npm-remote/\nproxy=host:80\nhttps-proxy=host\n"},
		{".m2/settings.xml", "<settings><mirrors><mirror><id>S3cretS3cret ghp_S3cretS3cretS3cretS3cret</id><password>S3cret</password></mirror></mirrors><password>S3cret</password></settings>",
			"<settings><mirrors><mirror><id></id></mirror></mirrors></settings>"},
		{".tool-versions", "# S3cret\nnodejs 20.1.0\npython 3.12 3.11\n", "nodejs 20.1.0\npython 3.12 3.11\n"},
	} {
		home := t.TempDir()
		path := filepath.Join(home, c.name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		found := Find(home, nil)
		if len(found) != 1 || string(found[0].Text) != c.want || found[0].IsPart != strings.Contains(c.text, "S3cret") && c.name != ".tool-versions" {
			t.Errorf("of %s there stays\n%+v\n%s\nwant\n%s", c.name, found, found[0].Text, c.want)
		}
	}
}

// What cannot be read is left out as a whole.
func TestFilesThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{".cargo/config.toml": "not TOML S3cret", ".m2/settings.xml": "<settings></mirrors>", ".config/composer/config.json": "["} {
		home := t.TempDir()
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if found := Find(home, nil); len(found) > 0 {
			t.Errorf("%s: %q", name, found[0].Text)
		}
	}
}

// Of a file with certificates its keys are left out.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	block := func(kind string) string {
		return "-----BEGIN " + kind + "-----\nUzNjcmV0\n-----END " + kind + "-----\n"
	}
	require.NoError(t, os.WriteFile(dir+"/ca.pem", []byte("# name\n"+block("PRIVATE KEY")+block("CERTIFICATE")+block("EC PRIVATE KEY")), 0o600))
	require.NoError(t, os.WriteFile(dir+"/key.pem", []byte(block("PRIVATE KEY")), 0o600))
	found := Certificates([]string{"SSL_CERT_FILE=" + dir + "/ca.pem", "PIP_CERT=" + dir + "/key.pem", "SSL_CERT_DIR=" + dir, "CURL_CA_BUNDLE=relative"})
	if len(found) != 1 || found[0].Path != dir+"/ca.pem" || string(found[0].Text) != block("CERTIFICATE") {
		t.Errorf("%+v", found)
	}
}
