package redact

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is secret in git's configuration is found and hidden, however it is written. All else stays as git reads it.
func TestGitConfig(t *testing.T) {
	for _, c := range []struct {
		text, secrets string
		keeps         []string
	}{
		{"[core]\n\tbare = false\n[user]\n\tname = A \\\"B\\\"\n\tsigningkey = ABCDEF\n", "", []string{"core.bare=false", `user.name=A "B"`, "user.signingkey=ABCDEF"}},
		{"[remote \"origin\"]\n\turl = https://me:s3cr3t@example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", "s3cr3t",
			[]string{"remote.origin.url=https://me:[secret]@example.com/x.git", "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*"}},
		{"[remote \"o\"]\n\turl = https://ghp_0123456789@example.com/x\n\tpushurl=git@example.com:x\n", "ghp_0123456789",
			[]string{"remote.o.url=https://[secret]@example.com/x", "remote.o.pushurl=git@example.com:x"}},
		{"[http \"https://example.com/\"]\n\textraheader = AUTHORIZATION: basic eDpnaHNfMDEyMzQ=\n", "eDpnaHNfMDEyMzQ= ghs_01234",
			[]string{"http.https://example.com/.extraheader=AUTHORIZATION: basic [secret]"}},
		{"[http]\n\textraHeader = \"PRIVATE-TOKEN: abcdef\"\n\textraHeader = X-Auth: ghijkl\n\tproxy = http://u:pass1@proxy:1\n",
			"abcdef ghijkl pass1", []string{"http.proxy=http://u:[secret]@proxy:1"}},
		{"[url \"https://x:t0ken@example.com/\"]\n\tinsteadOf = gh:\n[core]\n\tsymlinks\n", "t0ken",
			[]string{"url.https://x:[secret]@example.com/.insteadof=gh:", "core.symlinks"}},
		{"[github] token = 0123456789abcdef\n[sendemail]\n\tsmtpPass = hunter2\n[credential]\n\thelper = !echo password=s3cr3t\n" +
			"[imap]\n\tpass = a\\\"b\\\\c\n", "0123456789abcdef hunter2 s3cr3t a\"b\\c", nil},
		{"[remote \"o\"]\n\turl = https://me:s3c\\\nr3t@example.com/x\n# https://me:old@example.com\n[a]\n\tb = c\n", "s3cr3t old", []string{"a.b=c"}},
		{"[url \"https://r@example.com/\"]\n\tinsteadOf = x\n[core]\n\tbare = true\n", "r", []string{"core.bare=true"}},
		{"[http]\n\tsslCertPasswordProtected = true\n[a]\r\n\tb = \\\r\nc\r\n", "", []string{"http.sslcertpasswordprotected=true", "a.b=c"}},
	} {
		found := InGitConfig(c.text)
		for _, secret := range strings.Fields(c.secrets) {
			if !slices.Contains(found, secret) {
				t.Errorf("%q: found %q and not %s", c.text, found, secret)
			}
		}
		clean := CleanGitConfig(c.text)
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(clean), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", file, "--list").CombinedOutput()
		lines := strings.Split(string(out), "\n")
		for _, line := range c.keeps {
			if !slices.Contains(lines, line) {
				t.Errorf("%q: git reads %q, %v and not %s", clean, lines, err, line)
			}
		}
		for _, secret := range strings.Fields(c.secrets) {
			if err != nil || len(secret) > 2 && strings.Contains(clean, secret) {
				t.Errorf("%q has %s, %v", clean, secret, err)
			}
		}
		if c.secrets == "" && len(found) > 0 {
			t.Errorf("%q: %q", c.text, found)
		}
	}
}
