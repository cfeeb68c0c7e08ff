package proc

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	const key = "sk-ant-0123456789abcdef"
	for _, c := range []struct {
		what, env, pass, want string
	}{
		{"what programs need", "PATH=/bin HOME=/h LC_ALL=C https_proxy=http://p:3128 Path=/x CI=1",
			"", "PATH=/bin HOME=/h LC_ALL=C https_proxy=http://p:3128 Path=/x CI=1"},
		{"toolchains", "GOFLAGS=-v CARGO_HOME=/c npm_config_cache=/n PYTHONPATH=/p JAVA_HOME=/j CC=gcc SSH_AUTH_SOCK=/s",
			"", "GOFLAGS=-v CARGO_HOME=/c npm_config_cache=/n PYTHONPATH=/p JAVA_HOME=/j CC=gcc SSH_AUTH_SOCK=/s"},
		{"keys of models", "ANTHROPIC_API_KEY=k ANTHROPIC_AUTH_TOKEN=t OPENAI_API_KEY=k GEMINI_API_KEY=k HF_TOKEN=t OPENAI_ORG=o", "", ""},
		{"clouds", "AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_PROFILE=c GOOGLE_APPLICATION_CREDENTIALS=/x AZURE_CLIENT_ID=x " +
			"GITHUB_TOKEN=t GITHUB_ACTOR=a KUBECONFIG=/k DATABASE_URL=d", "", ""},
		{"keys of toolchains", "CARGO_REGISTRY_TOKEN=t NPM_CONFIG__AUTH=a NODE_AUTH_TOKEN=t UV_PUBLISH_PASSWORD=p GEM_HOST_API_KEY=k " +
			"BUNDLE_GEMS__EXAMPLE__COM=u:p npm_config_//registry.example.com/:_authToken=t COMPOSER_AUTH={} GRADLE_PUBLISH_SECRET=s " +
			"PIP_INDEX_URL=https://u:0123456789@h/", "", ""},
		{"a key under another name", "OPENAI_API_KEY=" + key + " LC_NAME=" + key + " CFLAGS=-DKEY=" + key + " LC_ALL=C", "", "LC_ALL=C"},
		{"an ordinary word is no key", "POSTGRES_PASSWORD=postgres HOME=/home/postgres PATH=/usr/lib/postgres:/bin", "",
			"HOME=/home/postgres PATH=/usr/lib/postgres:/bin"},
		{"a password among options", "JAVA_OPTS=-Dkey.password=s3cr3tpw GRADLE_OPTS=-Dhttp.proxyPassword=password " +
			"MAVEN_OPTS=-Dhttps.proxyPassword=x JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=h _JAVA_OPTIONS=-Dtrust.password=changeit", "",
			"JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=h _JAVA_OPTIONS=-Dtrust.password=changeit"},
		{"passwords of proxies", "https_proxy=http://u:password1@p HTTP_PROXY=http://u:p@h ALL_PROXY=u:p@h:3128 ftp_proxy=socks5://u:p@h " +
			"NO_PROXY=localhost,.corp HTTPS_PROXY=h:3128", "", "NO_PROXY=localhost,.corp HTTPS_PROXY=h:3128"},
		{"a proxy that the user passes", "HTTPS_PROXY=http://u:p@h", "HTTPS_PROXY", "HTTPS_PROXY=http://u:p@h"},
		{"names that the user passes", "MY_THING=1 OTHER=2 DB_PASSWORD=p", "MY_THING DB_PASSWORD", "MY_THING=1 DB_PASSWORD=p"},
		{"a beginning passes no key", "MY_A=1 MY_TOKEN=2 MY_B=3", "MY_*", "MY_A=1 MY_B=3"},
		{"a beginning and a whole name", "MY_A=1 MY_TOKEN=2", "MY_* MY_TOKEN", "MY_A=1 MY_TOKEN=2"},
		{"never", "MUSTER_MODEL=m GIT_DIR=/x GIT_INDEX_FILE=/i GIT_AUTHOR_NAME=a", "MUSTER_MODEL GIT_DIR GIT_*", "GIT_AUTHOR_NAME=a"},
		{"git's settings", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraheader GIT_CONFIG_VALUE_0=x", "", ""},
	} {
		env := strings.Fields(c.env)
		was := slices.Clone(env)
		if got := strings.Join(Environment(env, strings.Fields(c.pass)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if !slices.Equal(env, was) {
			t.Errorf("%s: the caller's list has changed", c.what)
		}
	}
}

// Users read in the documentation which variables commands get.
func TestDocumentationListsTheVariables(t *testing.T) {
	page, err := os.ReadFile("../../docs/models-and-settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range passedVariables() {
		if value := strings.TrimSuffix(name, "*") + "=x"; len(Environment([]string{value}, nil)) == 0 {
			t.Errorf("%s is on the list and not passed", name)
		}
		if !slices.Contains(strings.FieldsFunc(string(page), func(r rune) bool { return strings.ContainsRune(" ,.`\n", r) }), name) {
			t.Errorf("docs/models-and-settings.md does not list %s", name)
		}
	}
}
