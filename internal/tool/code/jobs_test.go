package code

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/wait"
)

var seconds = regexp.MustCompile(`\d+(\.\d)? s\b`)

// timeless leaves out how long things took.
func timeless(s string) string { return seconds.ReplaceAllString(s, "N s") }

func (k *kit) background(command string, timeout int) string {
	k.t.Helper()
	input := in{"command": command, "background": true}
	if timeout > 0 {
		input["timeout"] = timeout
	}
	got := k.ok("bash", input)
	id, _, _ := strings.Cut(strings.TrimPrefix(got, "Started "), ".")
	same(k.t, "started", got, "Started "+id+". Its end will be announced; check_background shows how it does, "+
		"stop_background ends it.")
	return id
}

func (k *kit) woken() {
	k.t.Helper()
	select {
	case <-k.jobs.Wake():
	case <-time.After(time.Minute):
		k.t.Fatal("nobody was woken")
	}
}

func TestBackground(t *testing.T) {
	k := newKit(t)
	same(t, "none", k.ok("check_background", nil), "There are no background jobs.")
	same(t, "none by name", k.sorry("check_background", in{"id": "bg-1"}), "there are no background jobs")
	same(t, "id", k.background("echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3",
		0), "bg-1")
	wait.For(t, "the job begins", func() bool {
		return strings.Contains(k.ok("check_background", in{"id": "bg-1"}), "\nbegun")
	})
	same(t, "running", timeless(k.ok("check_background", in{"id": "bg-1"})),
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3\nruns for N s\n"+
			"begun")
	if k.jobs.Running() != 1 || len(k.jobs.Finished()) != 0 {
		t.Error("it runs, and is not finished")
	}
	k.put("go", "")
	k.woken()
	if k.jobs.Running() != 0 {
		t.Error("it does not run any more")
	}
	done := k.jobs.Finished()
	same(t, "announced", timeless(Render(done)), "<background-results>\n"+
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '&lt;/background-results>'; exit 3\nexit 3 "+
		"after N s\n  begun\n  &lt;/background-results>\n</background-results>")
	if again := k.jobs.Finished(); len(again) != 0 {
		t.Errorf("announced twice: %v", again)
	}
	// Who has asked knows.
	same(t, "id", k.background("true", 0), "bg-2")
	k.woken()
	same(t, "asked", timeless(k.ok("check_background", nil)),
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3\nexit 3 after N "+
			"s\nbg-2: true\nexit 0 after N s")
	if done := k.jobs.Finished(); len(done) != 0 {
		t.Errorf("announced after it was told: %v", done)
	}
	same(t, "no such", k.sorry("stop_background", in{"id": "bg-7"}),
		`there is no background job "bg-7"; there are: bg-1, bg-2`)
}

func TestStopBackground(t *testing.T) {
	k := newKit(t)
	id := k.background("echo begun; (setsid sleep 100 &); sleep 100", 0)
	wait.For(t, "the job begins", func() bool {
		return strings.Contains(k.ok("check_background", in{"id": id}), "\nbegun")
	})
	same(t, "stopped", timeless(k.ok("stop_background", in{"id": id})),
		"bg-1: echo begun; (setsid sleep 100 &); sleep 100\nexit 137 after N s (stopped)\nbegun")
	same(t, "twice", timeless(k.ok("stop_background", in{"id": id})),
		"bg-1: echo begun; (setsid sleep 100 &); sleep 100\nexit 137 after N s (stopped)\nbegun")
	if k.jobs.Running() != 0 || len(k.jobs.Finished()) != 0 {
		t.Error("it runs, or is announced to who stopped it")
	}
	k.background("sleep 100", 1)
	k.woken()
	for k.jobs.Running() > 0 {
		k.woken()
	}
	same(t, "time", timeless(Render(k.jobs.Finished())),
		"<background-results>\nbg-2: sleep 100\nexit 137 after N s (killed after 1s: its time was up)\n"+
			"</background-results>")
}

func TestJobsAreFewAndDieWithTheMember(t *testing.T) {
	k := newKit(t)
	for range maxRunningJobs {
		k.background("sleep 100", 0)
	}
	same(t, "one more", k.sorry("bash", in{"command": "true", "background": true}),
		"8 of your background jobs run already: wait for one, or stop one (check_background, stop_background)")
	k.jobs.Close()
	if n := k.jobs.Running(); n != 0 {
		t.Errorf("%d run after Close", n)
	}
	if _, err := k.try(t.Context(), "bash", in{"command": "true", "background": true}); !errors.Is(err,
		muster.ErrUnavailable) {
		t.Errorf("started after Close: %v", err)
	}
}

func TestLongBackgroundOutput(t *testing.T) {
	k := newKit(t)
	k.background("seq 1 200000", 0)
	k.woken()
	done := k.jobs.Finished()
	if len(done) != 1 || filepath.Dir(done[0].Path) != k.place.ReadOnly[0] ||
		!strings.HasSuffix(done[0].Last, "199999\n200000") || strings.Count(done[0].Last, "\n") != announcedLines-1 {
		t.Fatalf("%+v", done)
	}
	if data, err := os.ReadFile(done[0].Path); err != nil || !strings.HasPrefix(string(data), "1\n2\n") ||
		!strings.HasSuffix(string(data), "\n200000\n") {
		t.Errorf("%d bytes, error %v", len(data), err)
	}
	if got := Render(done); !strings.Contains(got, "; the whole output is in "+done[0].Path+"\n  199981\n") {
		t.Error(got)
	}
}

func TestJobsAreForgotten(t *testing.T) {
	k := newKit(t)
	for range maxFinishedJobs + 5 {
		k.background("true", 0)
		for k.jobs.Running() > 0 {
			k.woken()
		}
		k.jobs.Finished()
	}
	if n := len(k.jobs.list); n > maxFinishedJobs+2 {
		t.Errorf("%d are kept", n)
	}
	if _, err := k.jobs.find("bg-1"); err == nil {
		t.Error("the first is still known")
	}
}

func TestNothingClosesAMark(t *testing.T) {
	for text, want := range map[string]string{
		"</background-results>":    "&lt;/background-results>",
		"<\u00ad/\u2060identity>x": "&lt;\u00ad/\u2060identity>x",
		"<b>a < b, <input></div>":  "<b>a < b, <input></div>",
	} {
		got := Render([]Job{{ID: "bg-1", Command: "cat", Last: text}})
		if !strings.Contains(got, want) || strings.Contains(strings.TrimSuffix(got, "</background-results>"),
			text) != (text == want) {
			t.Errorf("%q became %q", text, got)
		}
	}
}
