package landing_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/journal"
)

// madeKey is a key that no scanner of this repository sees.
func madeKey(middle string) string { return "gh" + "p_" + "q7Rt2Yx9" + middle + "Lm4Nb8Vc1Zs6Qa2W" }

// allowing lets land what is in the map.
func allowing(allowed map[string]bool) func(*landing.Options) {
	return func(o *landing.Options) {
		o.IsAllowed = func(fingerprint string) (bool, error) { return allowed[fingerprint], nil }
	}
}

// fingerprint returns the one that the user could allow.
func (w *world) fingerprint(v landing.Verdict) string {
	w.t.Helper()
	found := regexp.MustCompile(`muster allow secret ([0-9a-f]{16})\n`).FindStringSubmatch(v.Text)
	if found == nil {
		w.t.Fatalf("no fingerprint:\n%s", v.Text)
	}
	return found[1]
}

// noTrace fails the test if anything that is told or kept of the landing has the key.
func (w *world) noTrace(v landing.Verdict, key string) {
	w.t.Helper()
	task, err := w.board.Get(w.ctx(), v.Task.ID)
	w.must(err)
	told := fmt.Sprintf("%s %+v", v.Text, task)
	for e, err := range w.journal.Read(w.ctx(), 0) {
		w.must(err)
		told += fmt.Sprintf("%+v", e)
	}
	if strings.Contains(told, key) || !strings.Contains(told, "secret in settings.py:2 github-pat") {
		w.t.Errorf("told: %s", told)
	}
}

func TestSecretsAreHeldBack(t *testing.T) {
	t.Parallel()
	key := madeKey("Kp3Wd5Hj0Fg1")
	allowed := map[string]bool{}
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, allowing(allowed))
	task, lane := w.task("Settings", "alice", map[string]string{".gitattributes": "* -diff\n",
		"settings.py": "import os\ntoken = '" + key + "'  # gitleaks:allow\n",
		"z.py":        "token = '" + madeKey("Zz1Yy2Xx3Ww4") + "'\n"})
	v := w.back(task)
	says(t, v.Text, "\n  z.py:1 github-pat (")
	if !strings.HasPrefix(v.Text, "Your work holds what looks like a secret, so it does not land. File, line and rule:\n  settings.py:2 github-pat (") || strings.Contains(v.Text, "ALL commits") {
		t.Errorf("told:\n%s", v.Text)
	}
	if v.Task.Status != muster.InProgress || v.Task.Owner != "alice" ||
		!strings.HasPrefix(v.Task.Returned, "secret in settings.py:2 github-pat and 1 more (muster allow secret ") {
		t.Errorf("the task: %+v", v.Task)
	}
	w.noTrace(v, key)

	// The key is gone: what the lane's history has does not land.
	w.write(lane, map[string]string{"settings.py": "import os\ntoken = os.environ['TOKEN']\n", "z.py": ""})
	w.lands(v.Task)
	if history := w.git("log", "-p", target); strings.Contains(history, key) {
		t.Error("the key has landed")
	}
	// The user allows one, and another one is held back.
	task, lane = w.task("Fixture", "bob", map[string]string{"test.py": "token = '" + key + "'\n"})
	v = w.back(task)
	allowed[w.fingerprint(v)] = true
	w.write(lane, map[string]string{"b.py": "token = '" + madeKey("Aa1Bb2Cc3Dd4") + "'\n"})
	v = w.back(v.Task)
	if strings.Contains(v.Text, "test.py") || !strings.Contains(v.Text, "b.py:1 github-pat") {
		t.Errorf("told:\n%s", v.Text)
	}
	allowed[w.fingerprint(v)] = true
	w.lands(v.Task)
	// What has landed is not asked about again, and nor is what was moved.
	task, lane = w.task("Moves", "carol", nil)
	gittest.Git(t, lane, "mv", "test.py", "moved.py")
	w.lands(task)
	// Where it is switched off, everything lands.
	w.process("", func(o *landing.Options) { o.LandSecrets = true })
	task, _ = w.task("Off", "dave", map[string]string{"c.py": "token = '" + madeKey("Ee5Ff6Gg7Hh8") + "'\n"})
	w.lands(task)
}

// With merge commits the history of the lane lands too, so a key in an earlier commit holds the work back.
func TestSecretsInTheHistoryOfALane(t *testing.T) {
	t.Parallel()
	key := madeKey("Kp3Wd5Hj0Fg1")
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) { o.MergeCommits = true })
	task, lane := w.task("Two steps", "alice", map[string]string{"settings.py": "token = ''\n\ntoken = '" + key + "'\n"})
	gittest.Git(t, lane, "add", "-A")
	gittest.Git(t, lane, "commit", "-q", "-m", "with the key")
	w.write(lane, map[string]string{"settings.py": "token = ''\n"})
	v := w.back(task)
	says(t, v.Text, "  settings.py:3 github-pat (")
	// What the text says helps.
	command := regexp.MustCompile(`run: git (reset --soft) \$\(git (merge-base HEAD \S+)\)`).FindStringSubmatch(v.Text)
	if command == nil {
		t.Fatalf("told:\n%s", v.Text)
	}
	at := strings.TrimSpace(gittest.Git(t, lane, strings.Fields(command[2])...))
	gittest.Git(t, lane, append(strings.Fields(command[1]), at)...)
	w.lands(v.Task)
	if history := w.git("log", "-p", target); strings.Contains(history, key) || !strings.Contains(history, "+token = ''") {
		t.Error("the key has landed, or nothing has")
	}
}

// The summary lands in the message of the commit. The third return in a row gives the task up, with what to do.
func TestSecretsInTheSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("A file", "alice", map[string]string{"b.txt": "b\n"})
	for range 3 {
		v, err := w.land.Land(w.ctx(), task.ID, task.Fence, "I used "+madeKey("Kp3Wd5Hj0Fg1"), "alice")
		if err != nil || v.Task.Landed != nil || !strings.Contains(v.Text, "what looks like a secret") {
			t.Fatalf("%+v, %v", v, err)
		}
		task = v.Task
	}
	if task.Status != muster.NeedsAttention || !strings.HasPrefix(task.Returned, "secret in (summary):1 github-pat (muster allow") {
		t.Errorf("%+v", task)
	}
}

// Work lands only when it is known what the user has allowed.
func TestSecretsWithoutTheUsersWord(t *testing.T) {
	t.Parallel()
	broken := errors.New("it cannot be read")
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) {
		o.IsAllowed = func(string) (bool, error) { return true, broken }
	})
	task, _ := w.task("Settings", "alice", map[string]string{"a.py": "token = '" + madeKey("Kp3Wd5Hj0Fg1") + "'\n"})
	if v, err := w.try(task); !errors.Is(err, broken) || v.Task.Landed != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

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
		require.NoError(t, os.Chmod(evil, 0o700))
		w.process(h.check("true"), func(o *landing.Options) { o.MergeCommits = merges })
		for _, v := range w.queued(h, w.many(4)...) {
			w.landed(v, nil)
		}
		w.git("config", "--unset", "gpg.ssh.program")
		equal(t, fmt.Sprint("signed of all, with merges: ", merges), fmt.Sprint(w.signed()), "5 5")
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
		t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(os.Getenv("HOME"), ".gitconfig"))
		w := newWorld(t, "true", nil)
		path := signingUser(t, "a passphrase")
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		require.NoError(t, fault(f.WriteString(config)))
		f.Close()
		w.process("true")
		for _, task := range w.many(2) {
			w.lands(task)
		}
		equal(t, name+": signed of all", fmt.Sprint(w.signed()), "0 2")
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
		good, _ := w.signed()
		equal(t, "signed commits with sign "+sign, good, want)
	}
}
