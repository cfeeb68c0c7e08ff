package redact

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/llm"
)

const key = "sk-ant-api03-Zq7/w+9fK2mXv81LrT4cYbN0dHs6Pj3E"

func TestFormsOfAKeyAreHidden(t *testing.T) {
	s := New("a word of eight", key)
	inJSON, _ := json.Marshal(map[string]string{"k": "<" + key + ">"})
	for name, text := range map[string]string{
		"plain":              key,
		"header":             "Authorization: Bearer " + key + "\r\n",
		"URL":                "https://h/?key=" + url.QueryEscape(key) + "&x=1",
		"path":               "https://h/" + url.PathEscape(key),
		"JSON":               string(inJSON),
		"hex":                hex.EncodeToString([]byte(key)),
		"base64":             base64.StdEncoding.EncodeToString([]byte(key)),
		"base64, one before": base64.StdEncoding.EncodeToString([]byte("x" + key)),
		"base64, of a pair":  "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+key)),
		"base64, of URLs":    base64.URLEncoding.EncodeToString([]byte("id:" + key + ":rest")),
		"the beginning":      "401: " + key[:20],
		"the end":            "..." + key[20:],
		"wrapped":            key[:24] + "\n" + key[24:],
		"twice":              key + key,
		"upper case":         "X-" + strings.ToUpper(key),
		"small escapes":      strings.ToLower(url.QueryEscape(key)),
		"base32":             base32.StdEncoding.EncodeToString([]byte(key)),
		"od":                 regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(key)), "$0 "),
		"xxd":                "00: " + regexp.MustCompile("..(..)?").ReplaceAllString(hex.EncodeToString([]byte("x"+key)), "$0 "),
	} {
		got := s.String(text)
		if !strings.Contains(got, Mark) {
			t.Errorf("%s: nothing hidden in %q", name, got)
		}
		for i := 0; i+minPiece <= len(key); i++ {
			if strings.Contains(got, key[i:i+minPiece]) {
				t.Errorf("%s: a piece of the key in %q", name, got)
			}
		}
		for _, word := range strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune(" []", r) }) {
			if plain, _ := base64.RawStdEncoding.DecodeString(word); bytes.Contains(plain, []byte(key[8:16])) {
				t.Errorf("%s: %q is base64 of the key", name, word)
			}
		}
		if again := s.String(got); again != got {
			t.Errorf("%s: hidden again %q is %q", name, got, again)
		}
	}
	for _, text := range []string{"", "sk-ant-api03-", "a word", "short of any key", strings.Repeat("text ", 100)} {
		if got := s.String(text); got != text {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// A password with odd characters is found as programs quote it.
func TestQuotedPasswords(t *testing.T) {
	const password = `pä"ss\w/o<rd&1`
	s := New(password)
	for name, text := range map[string]string{
		"JSON":         `{"p":"p\u00e4\"ss\\w/o<rd&1"}`,
		"JSON of PHP":  `{"p":"pä\"ss\\w\/o<rd&1"}`,
		"JSON in JSON": `"{\"p\":\"pä\\\"ss\\\\w/o<rd&1\"}"`,
		"HTML":         `<p>pä&#34;ss\w/o&lt;rd&amp;1</p>`,
		"Go":           strconv.Quote(password),
	} {
		if got := s.String(text); !strings.Contains(got, Mark) || strings.Contains(got, "rd&") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What many texts have is not hidden because some variable has it too.
func TestOrdinaryValues(t *testing.T) {
	for _, v := range []string{"postgres", "password", "changeme", "test-key", "YOUR_API_KEY", "MyPassword", "publickey",
		"not needed", "31536000", "sk-no-key-required", "OPENROUTER_API_KEY_FOR_TESTS", "example.com"} {
		if New(v) != nil {
			t.Errorf("%q is a secret", v)
		}
	}
	for _, v := range []string{"abc12345", "hunter2hunter2", "kXqWzTbn", "correct horse battery staple", "abcdefghijklmnop",
		"0123456789", "s3cr3t-k"} {
		if New(v) == nil {
			t.Errorf("%q is no secret", v)
		}
	}
	jwt := New("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb2xlIjoiYWRtaW4iLCJpYXQiOjE3MDAwMDAwMDB9.c2lnbmF0dXJlLW9mLTMyLWJ5dGVz")
	const other = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.b3RoZXI"
	if got := jwt.String(other); got != other {
		t.Errorf("the token of another is %q", got)
	}
	if got := jwt.String("x eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb2xlIjoiYWRtaW4iLCJpYXQiOjE3MDAwMDAwMDB9.c2lnbmF0dXJlLW9mLTMyLWJ5dGVz"); got !=
		"x eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."+Mark {
		t.Errorf("a token is %q", got)
	}
}

func TestSecretsOfATextThatProgramsRead(t *testing.T) {
	for text, want := range map[string]string{
		"API_TOKEN=one make":                              "one",
		`curl -H "X-Api-Key: two" https://h`:              "two",
		`curl -H 'Authorization: Bearer three' https://h`: "three",
		"-Dkey.store.password=four -Dother=x":             "four",
		"deploy --token five --wait":                      "five",
		"deploy --token=six":                              "six",
		"curl -u me:seven https://h":                      "seven",
		`{"token":"x","client_secret": "eight"}`:          "eight",
		"curl https://a && curl https://me:nine@h/x":      "nine",
		"psql postgres://me:t#e/n@h":                      "",
		"psql postgres://me:p#t%en@h/d":                   "p#t%en",
		"psql postgres://me:ele%2Fven@h/d":                "ele/ven ele%2Fven",
		"go test -run TestToken ./... -count=1":           "",
		"TOKEN=$TOKEN SECRET=${S} make --secret ./file":   "",
		"MAKEFLAGS=--jobserver-auth=fifo:/tmp/GMfifo123":  "",
		"lib/token.jar:lib/a-1.2.jar token-service:v1":    "",
		"see https://h/?list=PLrAXtmErZgOeiKm4sgNOkn":     "",
		"https://h/?list=PLrAXtmErZgOeiKm4sgNOkn":         "PLrAXtmErZgOeiKm4sgNOkn",
		"https://h/?next=https%3A%2F%2Fa.example%2F12345": "",
	} {
		if got := strings.Join(InText(text), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	if s := New("", "k", "1234567", "lm-studio", "  "); s != nil {
		t.Errorf("secrets of nothing: %q", s.values)
	}
	var none *Secrets
	data := []byte(key)
	if none.String(key) != key || &none.Bytes(data)[0] != &data[0] || none.Contains(key) {
		t.Error("no secrets hide something")
	}
}

// A document, such as the file of a service account, has words that are in many texts.
func TestADocumentIsNotHiddenAsAWhole(t *testing.T) {
	s := New("{\"type\":\"service_account\",\"auth_uri\":\"https://accounts.example.com/o/oauth2/auth\"," +
		"\"private_key\":\"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\\nAgEAAoIBAQC7Q4YV1f\\n\"}")
	for _, text := range []string{`{"type":"service_account","project":1}`, "https://accounts.example.com/o/oauth2/auth"} {
		if got := s.String(text); got != text {
			t.Errorf("%q is %q", text, got)
		}
	}
	if got := s.String("x MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj y"); got != "x "+Mark+" y" {
		t.Errorf("a line of the key: %q", got)
	}
}

// However a text is written, and wherever it is cut, no piece of a key of minPiece bytes comes out.
func TestStreamsHideWhatIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[ab01]{8,40}`).Draw(t, "secret")
		s := New(secret)
		var text strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			text.WriteString(rapid.StringMatching(`[ab01 ]{0,20}`).Draw(t, "noise"))
			if rapid.Bool().Draw(t, "has it") {
				text.WriteString(secret)
			}
		}
		var out bytes.Buffer
		w := s.Writer(&out)
		for rest := text.String(); rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatalf("wrote %d of %d, %v", k, n, err)
			}
			rest = rest[n:]
		}
		require.NoError(t, w.Flush())
		piece := min(len(secret), minPiece)
		for i := 0; i+piece <= len(secret); i++ {
			if strings.Contains(out.String(), secret[i:i+piece]) {
				t.Fatalf("%q of %q is in %q, from %q", secret[i:i+piece], secret, out.String(), text.String())
			}
		}
		if !strings.Contains(text.String(), secret) && len(secret) < minPiece && out.String() != text.String() {
			t.Fatalf("%q became %q", text.String(), out.String())
		}
	})
}

func TestNamesOfCredentials(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD",
		"NPM_CONFIG__AUTH", "npm_config_//registry.npmjs.org/:_authToken", "AZURE_CLIENT_SECRET", "DbPassword", "MYSQL_PWD",
		"GOOGLE_CREDENTIALS", "API_KEY_2", "TOKEN1", "DOCKER_AUTH_CONFIG", "CARGO_REGISTRY_TOKEN", "SESSION_COOKIE",
		"AZURE_STORAGE_CONNECTION_STRING", "githubToken", "GITHUB_PAT", "X_APIKEY", "SENTRY_DSN", "UV_INDEX_MINE_USERNAME", "BUNDLE_GEMS__EXAMPLE__COM"} {
		if !IsCredential(name) {
			t.Errorf("%s is none", name)
		}
	}
	for _, name := range []string{"PATH", "PWD", "OLDPWD", "GIT_AUTHOR_NAME", "KEYBOARD", "SSH_AUTH_SOCK", "MONKEY", "HOME",
		"PASSENGER_ROOT", "GOPATH", "COLORTERM", "LC_ALL", "GIT_CONFIG_KEY_0", "BUNDLE_PATH", "MUSTER_ENVIRONMENT_PASS",
		"VAULT_AUTH_METHOD", "COGNITO_AUTH_DOMAIN", "SSH_KEY_TYPE", "SYSTEM_CERTIFICATE_PATH"} {
		if IsCredential(name) {
			t.Errorf("%s is one", name)
		}
	}
}

func TestSecretsOfAnEnvironment(t *testing.T) {
	got := FromEnviron([]string{"OPENAI_API_KEY=one", "HOME=/home/me", "GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json",
		"HTTPS_PROXY=http://me:two@proxy:8080", "ALL_PROXY=me:three@proxy", "AWS_SECRET_ACCESS_KEY=/four",
		"ANTHROPIC_BASE_URL=https://h/v1?key=five&version=2024-06-01", "ORIGIN=ssh://me@h/x", "GOPROXY=off,https://six@h",
		"SLACK_WEBHOOK=https://hooks.example.com/services/T0123/abcdefghijklmnop01",
		"GIT_CONFIG_VALUE_0=Authorization: Bearer seven", "HEADER=Authorization: Basic eight"})
	want := []string{"one", "two", "three", "/four", "five", "six", "abcdefghijklmnop01", "seven", "eight"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// says is a model that answers with a reply, which it streams in pieces of n bytes, or with an error.
type says struct {
	reply llm.Reply
	n     int
	err   error
}

func (m says) Reply(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	for i, p := range m.reply.Message.Parts {
		for text := p.(llm.Text).Text; m.n > 0 && text != ""; {
			n := min(m.n, len(text))
			emit(llm.Delta{Part: i, Text: text[:n]})
			emit(llm.Delta{Part: i})
			text = text[n:]
		}
	}
	return m.reply, m.err
}

func TestAModelThatRepeatsAKey(t *testing.T) {
	s := New(key)
	texts := llm.Parts{llm.Text{Text: "it is " + key}, llm.Text{Text: key + "!"}, llm.Text{Text: "sk-ant"}}
	for n := 1; n < 60; n++ {
		shown := map[int]string{}
		r, err := s.Model(says{llm.Reply{Message: llm.Message{Parts: texts}}, n, nil}).Reply(t.Context(), llm.Request{},
			func(d llm.Delta) { shown[d.Part] += d.Text })
		require.NoError(t, err)
		for i, want := range []string{"it is " + Mark, Mark + "!", "sk-ant"} {
			if shown[i] != want || r.Message.Parts[i].(llm.Text).Text != want {
				t.Errorf("pieces of %d: %q was shown, and %q kept", n, shown[i], r.Message.Parts[i])
			}
		}
	}
	if texts.Text() == s.Parts(texts).Text() || !strings.Contains(texts.Text(), key) {
		t.Error("the model's own reply has changed")
	}
}

func TestACallWithAKey(t *testing.T) {
	s := New(key, "0123456789")
	escaped := `{"command":"echo \u0073` + key[1:] + ` > f","n":12345678901234567890}`
	for in, want := range map[string]string{
		`{"command":"echo ` + key + `"}`: `{"command":"echo [secret]"}`,
		escaped:                          `{"command":"echo [secret] \u003e f","n":12345678901234567890}`,
		`{"` + key + `":[{"a":"\u0030123456789"}]}`:           `{"[secret]":[{"a":"[secret]"}]}`,
		`{"a":"\u003cno key\u003e"}`:                          `{"a":"\u003cno key\u003e"}`,
		`{"a":0123456789,` + strings.Repeat(" ", 3) + `"b":1`: `{"a":0123456789,   "b":1`, // no JSON, and no string
	} {
		p, _ := s.part(llm.Call{ID: "1", Name: "bash", Input: json.RawMessage(in)})
		if got := string(p.(llm.Call).Input); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
	signed := llm.Thinking{Text: "the key is " + key, Provider: "p", Opaque: json.RawMessage(`{"signature":"x"}`)}
	if p, _ := s.part(signed); p.(llm.Thinking).Text != "the key is "+Mark || p.(llm.Thinking).Opaque != nil {
		t.Errorf("thinking: %+v", p)
	}
}

func TestErrorsWithoutKeys(t *testing.T) {
	s := New(key)
	cause := errors.New("401: " + key)
	_, err := s.Model(says{err: &llm.Error{Kind: llm.Limited, After: time.Second, Status: 401, Err: cause}}).
		Reply(t.Context(), llm.Request{}, func(llm.Delta) {})
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Limited || e.After != time.Second || err.Error() != "limited: 401: "+Mark ||
		!errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	plain := muster.Errorf(muster.Held, "no")
	if got := s.Error(plain); got != error(plain) || s.Error(nil) != nil { //nolint:errorlint // the very same
		t.Error("an error without a key has changed")
	}
}

func TestRecordsStayJSON(t *testing.T) {
	secret := `a"quote\and<more>of it 12345`
	s := New(secret)
	data := require.Value(json.MarshalIndent(map[string]string{"x": "before " + secret + " after", "y": secret[1:]}, "", " "))(t)
	var got map[string]string
	if err := json.Unmarshal(s.record(data), &got); err != nil || got["x"] != "before "+Mark+" after" ||
		strings.Contains(got["y"], "12345") {
		t.Errorf("%q, %v", got, err)
	}
}

// A key that is learned later is hidden by the Secrets that there are, also where they have searched before.
func TestLearnedKeys(t *testing.T) {
	const later = "later-0123456789abcdef-of-a-command"
	s := New(key)
	if got := s.String("it is " + later); got != "it is "+later {
		t.Errorf("not learned yet: %s", got)
	}
	Learn(later, "", later)
	for _, of := range []*Secrets{s, New(key), s.With("another-0123456789")} {
		if got := of.String(key + " and " + later + " and " + later[:20]); got != Mark+" and "+Mark+" and "+Mark {
			t.Error(got)
		}
	}
	var none *Secrets
	if none.String(later) != later {
		t.Error("no secrets hide something")
	}
}
