package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

func TestNotifier(t *testing.T) {
	const osc9, osc777, wrapped = "\x1b]9;muster: a, b\a", "\x1b]777;notify;muster;a, b\a", "\x1bPtmux;\x1b\x1b]9;muster: a, b\a\x1b\\"
	for _, c := range []struct{ setting, env, want string }{
		{"", "TERM=xterm-256color", "\a"},
		{"auto", "TERM=xterm-256color TERM_PROGRAM=iTerm.app", "\a" + osc9},
		{"auto", "TERM=xterm-ghostty", "\a" + osc9},
		{"", "TERM=foot", "\a" + osc777},
		{"", "TERM=rxvt-unicode-256color", "\a" + osc777},
		{"", "TERM=tmux-256color TERM_PROGRAM=tmux TMUX=/tmp/x", "\a"},
		{"", "TERM=xterm-ghostty TMUX=/tmp/x", "\a"},
		{"bell", "TERM=foot", "\a"},
		{"osc", "TERM=xterm", osc9},
		{"osc", "TERM=foot", osc777},
		{"osc", "TERM=tmux-256color TMUX=/tmp/x", wrapped},
		{"off", "TERM=foot", ""},
		{"osc", "TERM=dumb", ""},
	} {
		env := func(name string) string {
			for kv := range strings.FieldsSeq(c.env) {
				if value, ok := strings.CutPrefix(kv, name+"="); ok {
					return value
				}
			}
			return ""
		}
		got := ""
		if ring := Notifier(c.setting, env); ring != nil {
			got = ring("a; \x1bb")
		}
		if got != c.want {
			t.Errorf("%q in %s: %q, want %q", c.setting, c.env, got, c.want)
		}
	}
}

func TestNotificationsAreOfWhatNeedsTheUser(t *testing.T) {
	asks := func(id string, to muster.Name) muster.Event {
		return at(journal.RequestCreated, "alice", 2, "request_id", id, "kind", "plan_approval", "to", string(to))
	}
	idle := at(journal.MemberIdle, "lead", 0, "reason", WaitsForYou)
	turn := at(journal.TurnStarted, "lead", 0)
	for name, c := range map[string]struct {
		steps []any // an event, or a time that passes
		want  []string
	}{
		"to the user":      {[]any{asks("1", "user")}, []string{"alice asks: plan for 2"}},
		"to a member":      {[]any{asks("1", "bob"), time.Minute}, nil},
		"to the lead":      {[]any{asks("1", "lead"), 9 * time.Second, time.Second}, []string{"alice asks: plan for 2"}},
		"the lead answers": {[]any{asks("1", "lead"), 9 * time.Second, at(journal.RequestDecided, "lead", 2, "request_id", "1"), time.Minute}, nil},
		"given up":         {[]any{at(journal.TaskAttention, "alice", 2)}, []string{"task 2 needs you: counter"}},
		"mail":             {[]any{at(journal.MailSent, "alice", 0, "to", "user"), at(journal.MailSent, "alice", 0, "to", "bob")}, []string{"alice writes to you"}},
		"a burst":          {[]any{asks("1", "user"), asks("2", "user"), 3 * time.Second, asks("3", "user")}, []string{"alice asks: plan for 2", "alice asks: plan for 2"}},
		"the end":          {[]any{at(journal.RunEnded, "lead", 0, "code", 0.0)}, []string{"the run is done"}},
		"a bad end":        {[]any{at(journal.RunEnded, "lead", 0, "code", 3.0)}, []string{"the run has stopped, with work left"}},
		"a short turn":     {[]any{turn, 5 * time.Second, idle}, nil},
		"a long one":       {[]any{turn, 5 * time.Second, turn, 5 * time.Second, idle, idle, 3 * time.Second, idle}, []string{"the lead waits for you"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			now := muster.Time(1000)
			p := NewProgress(Options{Print: func(string) {}, Start: now, Task: lookup(muster.Task{ID: 2, Subject: "counter"}),
				Notify: func(words string) { got = append(got, words) }})
			for _, step := range c.steps {
				switch step := step.(type) {
				case muster.Event:
					step.At = muster.UnixTime(now)
					p.Event(step)
				case time.Duration:
					now = now.Add(step)
					p.Tick(now)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
