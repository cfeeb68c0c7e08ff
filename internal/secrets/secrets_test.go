package secrets

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	digits = "0123456789"
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hexes  = digits + "abcdef"
	alnum  = digits + lowers + uppers
)

// maker makes random text. The keys of these tests are made when they run, so that none stands in the source.
type maker struct{ *rand.Rand }

func newMaker() maker { return maker{rand.New(rand.NewPCG(7, 11))} }

// of returns n characters of a set, none of which stands twice in a row.
func (m maker) of(set string, n int) string {
	var b []byte
	for len(b) < n {
		if c := set[m.IntN(len(set))]; len(b) == 0 || b[len(b)-1] != c {
			b = append(b, c)
		}
	}
	return string(b)
}

func (m maker) pem(kind string) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + kind + "PRIVATE " + "KEY-----\n")
	for range 12 {
		b.WriteString(m.of(alnum+"+/", 64) + "\n")
	}
	return b.String() + "-----END " + kind + "PRIVATE " + "KEY-----\n"
}

// samples returns keys, by the rule that finds each: a line of a file, and the key in it.
func (m maker) samples() map[string][2]string {
	all := map[string][2]string{}
	add := func(rule, before, key, behind string) { all[rule] = [2]string{before + key + behind, key} }
	add("aws-access-token", `id = "`, "AKIA"+m.of(uppers+"234567", 16), `"`)
	add("github-pat", "token: ", "ghp"+"_"+m.of(alnum, 36), "")
	add("github-oauth", "token: ", "gho"+"_"+m.of(alnum, 36), "")
	add("github-app-token", "token: ", "ghs"+"_"+m.of(alnum, 36), "")
	add("github-fine-grained-pat", "token: ", "github"+"_pat_"+m.of(alnum, 82), "")
	add("gitlab-pat", "token: ", "glpat"+"-"+m.of(alnum, 20), "")
	add("gitlab-deploy-token", "token: ", "gldt"+"-"+m.of(alnum, 20), "")
	add("slack-bot-token", `"`, "xoxb"+"-"+m.of(digits, 12)+"-"+m.of(digits, 12)+"-"+m.of(alnum, 24), `"`)
	add("slack-webhook-url", "", "https://hooks.slack"+".com/services/T"+m.of(uppers, 8)+"/B"+m.of(uppers, 8)+"/"+m.of(alnum, 24), "")
	add("stripe-access-token", `k = "`, "sk"+"_live_"+m.of(alnum, 24), `"`)
	add("openai-api-key", `k = "`, "sk-"+m.of(alnum, 20)+"T3Blbk"+"FJ"+m.of(alnum, 20), `"`)
	add("anthropic-api-key", `k = "`, "sk-ant"+"-api03-"+m.of(alnum+"_-", 93)+"AA", `"`)
	add("huggingface-access-token", `k = "`, "hf"+"_"+m.of(lowers, 34), `"`)
	add("npm-access-token", `_authToken=`, "npm"+"_"+m.of(lowers+digits, 36), "")
	add("pypi-upload-token", "password = ", "pypi-AgEIcHl"+"waS5vcmc"+m.of(alnum, 60), "")
	add("sendgrid-api-token", `k = "`, "SG"+"."+m.of(alnum, 66), `"`)
	add("gcp-api-key", `k = "`, "AIza"+m.of(alnum, 35), `"`)
	add("digitalocean-pat", `k = "`, "dop"+"_v1_"+m.of(hexes, 64), `"`)
	add("shopify-access-token", `k = "`, "shpat"+"_"+m.of(hexes, 32), `"`)
	add("twilio-api-key", `k = "`, "SK"+m.of(hexes, 32), `"`)
	add("databricks-api-token", `k = "`, "dapi"+m.of(hexes, 32), `"`)
	add("doppler-api-token", `k = "`, "dp"+".pt."+m.of(lowers+digits, 43), `"`)
	add("grafana-service-account-token", `k = "`, "glsa"+"_"+m.of(alnum, 32)+"_"+m.of(hexes, 8), `"`)
	add("linear-api-key", `k = "`, "lin"+"_api_"+m.of(lowers+digits, 40), `"`)
	add("notion-api-token", `k = "`, "ntn"+"_"+m.of(digits, 11)+m.of(alnum, 35), `"`)
	add("postman-api-token", `k = "`, "PMAK"+"-"+m.of(hexes, 24)+"-"+m.of(hexes, 34), `"`)
	add("pulumi-api-token", `k = "`, "pul"+"-"+m.of(hexes, 40), `"`)
	add("rubygems-api-token", `k = "`, "rubygems"+"_"+m.of(hexes, 48), `"`)
	add("planetscale-api-token", `k = "`, "pscale"+"_tkn_"+m.of(alnum, 40), `"`)
	add("telegram-bot-api-token", `telegram_token = "`, m.of("123456789", 9)+":A"+m.of(alnum, 34), `"`)
	add("vault-service-token", `k = "`, "hvs"+"."+m.of(alnum, 95), `"`)
	add("age-secret-key", "", "AGE-SECRET"+"-KEY-1"+m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "")
	add("perplexity-api-key", `k = "`, "pplx"+"-"+m.of(alnum, 48), `"`)
	claim := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	add("jwt", `k = "`, claim(`{"alg":"HS256","typ":"JWT"}`)+"."+claim(`{"sub":"`+m.of(digits, 12)+`"}`)+"."+m.of(alnum, 43), `"`)
	add("datadog-access-token", `datadog_api_key = "`, m.of(hexes, 40), `"`)
	add("generic-api-key", `db_password = "`, m.of(alnum, 24), `"`)
	for _, kind := range []string{"", "RSA ", "EC ", "OPENSSH "} {
		key := m.pem(kind)
		all["private-key "+kind] = [2]string{key, key}
	}
	return all
}

// filler is a file of ordinary code, in which a line is to be found.
func filler(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "\tresult%d := compute(ctx, input[%d], \"some text\") // the key of the token is %d\n", i, i*7, i)
	}
	return b.String()
}

func TestKeysAreFound(t *testing.T) {
	samples := newMaker().samples()
	if len(samples) < 25 {
		t.Fatalf("only %d kinds", len(samples))
	}
	for name, sample := range samples {
		rule := strings.Fields(name)[0]
		text := filler(20) + sample[0] + "\n" + filler(20)
		found := Scan([]Change{{Path: "src/a.go", New: []byte(text)}})
		if len(found) != 1 || found[0].Rule != rule || found[0].Line != 21 || found[0].File != "src/a.go" || len(found[0].Fingerprint) != 16 {
			t.Errorf("%s: found %+v in\n%s", name, found, sample[0])
		}
		if shown := fmt.Sprintf("%+v", found); strings.Contains(shown, sample[1]) {
			t.Errorf("%s: the key is shown: %s", name, shown)
		}
		// A file of one long line.
		long := strings.Repeat("x = compute(1, 2); ", 5000) + strings.ReplaceAll(sample[0], "\n", `\n`) + strings.Repeat(" ; y = 3", 5000)
		if found = Scan([]Change{{Path: "a.min.txt", New: []byte(long)}}); len(found) == 0 {
			t.Errorf("%s: not found in a long line", name)
		}
		// Comments of the file do not count.
		if found = Scan([]Change{{Path: "a.go", New: []byte("// gitleaks:allow\n" + sample[0] + " // gitleaks:allow\n")}}); len(found) == 0 {
			t.Errorf("%s: a comment has switched the rule off", name)
		}
		// What was there before is not new, wherever it stands now.
		if found = Scan([]Change{{Path: "a.go", Old: [][]byte{[]byte(sample[0] + "\n")}, New: []byte(text)}}); len(found) > 0 {
			t.Errorf("%s: found what is not new: %+v", name, found)
		}
		for what, c := range map[string]Change{
			"a binary file": {Path: "a", New: []byte("\x00" + text)},
			"a lock file":   {Path: "web/package-lock.json", New: []byte(text)},
			"a huge file":   {Path: "a", New: []byte(text + strings.Repeat(" ", MaxFile))},
		} {
			if found := Scan([]Change{c}); len(found) > 0 {
				t.Errorf("%s: found in %s", name, what)
			}
		}
	}
}

func TestLookalikesAreNoKeys(t *testing.T) {
	m := newMaker()
	uuid := m.of(hexes, 8) + "-" + m.of(hexes, 4) + "-4" + m.of(hexes, 3) + "-a" + m.of(hexes, 3) + "-" + m.of(hexes, 12)
	for _, line := range []string{
		"commit " + m.of(hexes, 40),
		`"key": "` + m.of(hexes, 40) + `",`,
		`sha256: ` + m.of(hexes, 64),
		`token_hash = "` + m.of(hexes, 64) + `"`,
		`"integrity": "sha512-` + m.of(alnum+"+/", 86) + `=="`,
		`example.org/m v1.2.3 h1:` + m.of(alnum+"+/", 43) + `=`,
		`"id": "` + uuid + `"`,
		`api_key_id = "` + uuid + `"`,
		`secret: ` + uuid,
		`aws_access_key_id = ` + "AKIA" + "IOSFODNN7EXAMPLE",
		`aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY` + `EXAMPLEKEY"`,
		`token = "ghp` + `_` + strings.Repeat("x", 36) + `"`,
		`token = "` + "sk-ant-api03-" + strings.Repeat("x", 93) + `AA"`,
		`api_key: ${API_KEY}`,
		`api_key: ${{ secrets.API_KEY }}`,
		`password = os.Getenv("DATABASE_PASSWORD")`,
		`password: {{ .Values.database.password }}`,
		`token := r.Header.Get("Authorization")`,
		`const tokenExpired = "token_has_expired_please_login"`,
		`var keyNames = map[string]string{"key": "primary-key-of-the-table"}`,
		`secret := "changeme-please-1234567890"`,
		`-----BEGIN PUBLIC KEY-----` + "\n" + m.of(alnum, 64) + "\n-----END PUBLIC KEY-----",
		`-----BEGIN CERTIFICATE-----` + "\n" + m.of(alnum, 64) + "\n-----END CERTIFICATE-----",
		"-----BEGIN RSA PRIVATE " + "KEY-----\n...\n-----END RSA PRIVATE " + "KEY-----",
		`if strings.HasPrefix(line, "-----BEGIN PRIVATE ` + `KEY-----") {`,
		`background: url(data:image/png;base64,` + m.of(alnum+"+/", 400) + `)`,
		`ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI` + m.of(alnum+"+/", 43) + ` user@host`,
		`func (s *Session) keyPressed(token string, secret []byte) (password string, err error) {`,
		`The token is refreshed by the secret service before the key expires in 3600 seconds.`,
		`<input type="password" name="password" autocomplete="current-password">`,
		`uses: actions/checkout@` + m.of(hexes, 40),
		`FROM golang@sha256:` + m.of(hexes, 64),
	} {
		if found := Scan([]Change{{Path: "a.txt", New: []byte(line + "\n")}}); len(found) > 0 {
			t.Errorf("%s: %+v", line, found)
		}
	}
}

// The body of a key that is exchanged is new, though its first line is not.
func TestAKeyIsExchanged(t *testing.T) {
	m := newMaker()
	before, after := "a\n"+m.pem("RSA "), "a\n"+m.pem("RSA ")
	found := Scan([]Change{{Path: "k.pem", Old: [][]byte{[]byte(before)}, New: []byte(after)}})
	if len(found) != 1 || found[0].Line != 2 {
		t.Errorf("%+v", found)
	}
	// A merge brings what both sides had.
	if found = Scan([]Change{{Path: "k.pem", Old: [][]byte{[]byte("a\n"), []byte(after)}, New: []byte(after)}}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestFingerprint(t *testing.T) {
	m := newMaker()
	key := "glpat" + "-" + m.of(alnum, 20)
	find := func(path, text string) string {
		t.Helper()
		found := Scan([]Change{{Path: path, New: []byte(text)}})
		if len(found) != 1 {
			t.Fatalf("%s: %+v", text, found)
		}
		return found[0].Fingerprint
	}
	first := find("a", "t: "+key)
	if find("a", "x\n\nu: "+key+"\n") != first {
		t.Error("it depends on the place in the file")
	}
	if find("b", "t: "+key) == first || find("a", "t: "+"glpat"+"-"+m.of(alnum, 20)) == first {
		t.Error("it does not depend on the file or on the key")
	}
}

// Each expression of the file can be compiled, and each rule is tried: by a keyword, or always.
func TestRules(t *testing.T) {
	for _, r := range rules().Rules {
		all := []string{r.Regex, r.Path}
		for _, a := range append(r.Allow, rules().Allow) {
			all = append(append(all, a.Regexes...), a.Files...)
		}
		for _, expr := range all {
			if _, err := regexp.Compile(expr); err != nil {
				t.Errorf("%s: %v", r.ID, err)
			}
		}
		for _, k := range r.Keywords {
			if len(k) < 2 || k != strings.ToLower(k) {
				t.Errorf("%s: the keyword %q is never found", r.ID, k)
			}
		}
	}
}

// Whatever a file holds, the search ends, and names lines that are there.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"key", "=", "\n", "\"", "é", "\xff", "token: ", "eyJ", "sk_live_", "A1b2C3d4E5", "-----BEGIN ", "\r\n", "."}))
		text, old := strings.Join(words.Draw(t, "new"), ""), strings.Join(words.Draw(t, "old"), "")
		for _, f := range Scan([]Change{{Path: "a", Old: [][]byte{[]byte(old)}, New: []byte(text)}}) {
			if f.Line < 1 || f.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("line %d of %q", f.Line, text)
			}
		}
	})
}

// Keys returns private keys whole, also where its end was cut off and where each line has something before it.
func TestKeysReturnsWholePrivateKeys(t *testing.T) {
	t.Parallel()
	key := newMaker().pem("RSA ")
	lines := strings.Split(strings.TrimSpace(key), "\n")
	body := lines[1 : len(lines)-1]
	for name, text := range map[string]string{"as it is": key, "in a diff": "+" + strings.ReplaceAll(key, "\n", "\n+"), "cut": strings.Join(lines[:len(lines)-1], "\n"),
		"in one line": strings.ReplaceAll(key, "\n", `\n`), "twice": key + filler(20) + key} {
		found := strings.Join(Keys("", []byte(text)), "\n")
		for i, line := range body {
			if !strings.Contains(found, line) {
				t.Errorf("%s: line %d is not in what was found", name, i+1)
			}
		}
		if strings.Contains(found, "END RSA") || name == "twice" && len(Keys("", []byte(text))) != 2 {
			t.Errorf("%s: found %q", name, found)
		}
	}
}
