package landing_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
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
	task, lane := w.task("Settings", "alice", map[string]string{".gitattributes": "* -diff\n", "settings.py": "import os\ntoken = '" + key + "'  # gitleaks:allow\n"})
	v := w.back(task)
	if !strings.HasPrefix(v.Text, "Your work holds what looks like a secret, so it does not land. File, line and rule:\n  settings.py:2 github-pat (") || strings.Contains(v.Text, "ALL commits") {
		t.Errorf("told:\n%s", v.Text)
	}
	if v.Task.Status != muster.InProgress || v.Task.Owner != "alice" || !strings.HasPrefix(v.Task.Returned, "secret in settings.py:2 github-pat (muster allow secret ") {
		t.Errorf("the task: %+v", v.Task)
	}
	w.noTrace(v, key)

	// The key is gone: what the lane's history has does not land.
	w.write(lane, map[string]string{"settings.py": "import os\ntoken = os.environ['TOKEN']\n"})
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
