package landing_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
	"muster/journal"
)

// signingUser gives the test a git config of the user's that signs with a new key of ssh, which a passphrase protects
// unless that is empty, and returns the path of the config.
func signingUser(t *testing.T, passphrase string) (config string) {
	t.Helper()
	gittest.Env(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if out, err := exec.Command(tier.Needs(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", passphrase, "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	signers := "ann@example.com " + gittest.Read(t, dir, "key.pub")
	gittest.Write(t, dir, map[string]string{"signers": signers, "config": "[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n" +
		"[user]\n\tname = Ann Tester\n\temail = ann@example.com\n\tsigningKey = " + key + ".pub\n[gpg \"ssh\"]\n\tallowedSignersFile = " + dir + "/signers\n"})
	config = filepath.Join(dir, "config")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	return config
}

// signed returns the commits on the target that git verifies, and all that landed.
func (w *world) signed() (good, all int) {
	w.t.Helper()
	for _, commit := range strings.Fields(w.git("rev-list", "--first-parent", "main.."+target)) {
		all++
		if _, err := gittest.Try(w.root, "verify-commit", commit); err == nil {
			good++
		}
	}
	return good, all
}

// unsigned returns the notes that commits land unsigned.
func (w *world) unsigned() []string { w.t.Helper(); return w.said(journal.RunNote, "text", "unsigned") }

// Each commit of a stack is signed, and one that lands alone or as a merge, with the user's key and nobody else's.
func TestWhatLandsIsSigned(t *testing.T) {
	for _, merges := range []bool{false, true}[:tier.Amount(1, 2)] {
		signingUser(t, "")
		h := newHold(t)
		w := newWorld(t, h.check("true"), nil, func(o *landing.Options) { o.MergeCommits = merges })
		// What an agent writes into the repository's config chooses neither program nor key, and is not asked.
		evil := filepath.Join(t.TempDir(), "evil")
		for key, value := range map[string]string{"commit.gpgSign": "false", "gpg.ssh.program": evil, "gpg.program": evil,
			"gpg.format": "openpgp", "user.signingKey": "key::evil", "gpg.ssh.defaultKeyCommand": evil} {
			w.git("config", key, value)
		}
		gittest.Write(t, filepath.Dir(evil), map[string]string{"evil": "#!/bin/sh\ntouch " + evil + ".ran\nexit 1\n"})
		must(t, os.Chmod(evil, 0o700))
		w.process(h.check("true"), func(o *landing.Options) { o.MergeCommits = merges })
		for id, v := range w.queued(h, w.many(4)...) {
			if v.Task.Landed == nil {
				t.Errorf("task %d has not landed: %s", id, v.Text)
			}
		}
		w.git("config", "--unset", "gpg.ssh.program")
		if good, all := w.signed(); good != 5 || all != 5 {
			t.Errorf("merges %v: %d of %d commits are signed", merges, good, all)
		}
		if _, err := os.Stat(evil + ".ran"); err == nil || len(w.unsigned()) > 0 {
			t.Errorf("the program of the repository's config ran: %v; notes %q", err == nil, w.unsigned())
		}
	}
}

// A key that cannot be used keeps nothing from landing, and people are told once, with the reason.
func TestWhatCannotBeSignedLands(t *testing.T) {
	for name, config := range map[string]string{ // in the first tier only the first
		"a passphrase":   "",
		"no key":         "[user]\n\tsigningKey = /nowhere/key\n",
		"no program":     "[gpg \"ssh\"]\n\tprogram = /nowhere/ssh-keygen\n",
		"another format": "[gpg]\n\tformat = x509\n[gpg \"x509\"]\n\tprogram = /bin/false\n",
	} {
		if config != "" && !tier.IsAll() {
			continue
		}
		t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
		w := newWorld(t, "true", nil)
		path := signingUser(t, "a passphrase")
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		if _, err := f.WriteString(config); err != nil {
			t.Fatal(err)
		}
		f.Close()
		w.process("true")
		for _, task := range w.many(2) {
			w.lands(task)
		}
		if good, all := w.signed(); good != 0 || all != 2 {
			t.Errorf("%s: %d of %d commits are signed", name, good, all)
		}
		if notes := w.unsigned(); len(notes) != 1 || len(notes[0]) < 70 {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// The setting is stronger than the user's git config, in both directions.
func TestSettingOfSigning(t *testing.T) {
	for sign, want := range map[string]int{landing.SignNever: 0, landing.SignAuto: 0, "": 0, landing.SignAlways: 1} {
		config := signingUser(t, "")
		if sign != landing.SignNever {
			gittest.Git(t, "", "config", "--file", config, "commit.gpgSign", "false")
		}
		w := newWorld(t, "", nil, func(o *landing.Options) { o.Sign = sign })
		task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
		equal(t, "the receipt", w.lands(task).Task.Landed.Receipt, muster.ReceiptUnchecked)
		if good, _ := w.signed(); good != want {
			t.Errorf("sign %q: %d commits are signed, not %d", sign, good, want)
		}
	}
}
