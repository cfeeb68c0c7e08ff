package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/store/file"
)

// These tests play the programs that know neither our locks nor our checksums, and the damage of disks.

// write writes a file as another program does, and addTo adds to one.
func write(t *testing.T, path, data string) {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)))
}

func addTo(t *testing.T, path, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, did(f.WriteString(data)))
	require.NoError(t, f.Close())
}

func one(t *testing.T) (*file.Store, string) {
	t.Helper()
	root := t.TempDir()
	s := open(t, root)
	t.Cleanup(func() { s.Close() })
	return s, root
}

// pending peeks at alice's box.
func pending(t *testing.T, s *file.Store) ([]muster.Message, muster.Pos) {
	t.Helper()
	ms, end, err := s.Inbox().Peek(t.Context(), "alice", 0, 1000)
	require.NoError(t, err)
	return ms, end
}

func said(ms []muster.Message) string {
	var all []string
	for _, m := range ms {
		all = append(all, m.Content)
	}
	return strings.Join(all, " ")
}

func TestOpenAndReadingMakeNothing(t *testing.T) {
	s, root := one(t)
	ctx := t.Context()
	for d, err := range s.Table(muster.TableTasks).Changes(ctx, 0) {
		t.Errorf("an empty repository has the task %v, %v", d, err)
	}
	_, _ = s.Table(muster.TableTeam).Get(ctx, "run") // what each of them answers is tested elsewhere
	for r, err := range s.Log().Read(ctx, muster.StreamEvents, 0) {
		t.Errorf("an empty repository has the event %v, %v", r, err)
	}
	_, _ = s.Log().Tail(ctx, muster.StreamEvents, 5)
	_, _, _ = s.Inbox().Peek(ctx, "alice", 0, 5)
	_ = s.Inbox().Drop(ctx, "alice", 7)
	_, _ = s.Leases().Held(ctx, "host-1")
	s.Table(muster.TableTasks).Watch(ctx)
	if left, _ := os.ReadDir(root); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}

func TestFilesAreWhereTheyBelong(t *testing.T) {
	s, root := one(t)
	ctx := t.Context()
	for table, key := range map[string]string{
		muster.TableTasks: "7", muster.TableMembers: "alice", muster.TableRequests: "7f2c91aa",
		muster.TableHosts: "host-1", muster.TableTeam: "run",
	} {
		require.NoError(t, did(s.Table(table).Put(ctx, key, []byte("{}"), muster.None)))
	}
	for _, stream := range []string{muster.StreamEvents, muster.StreamClaims, muster.StreamLanes,
		muster.StreamTranscripts + "alice"} {
		require.NoError(t, did(s.Log().Append(ctx, stream, 0, []byte("{}"))))
	}
	require.NoError(t, s.Inbox().Put(ctx, "alice", muster.Message{From: "bob", Content: "x"}))
	require.NoError(t, did(s.Leases().Acquire(ctx, "host-1")))
	for _, name := range []string{
		".tasks/task_7.json", ".team/members/alice.json", ".team/requests/7f2c91aa.json", ".team/hosts/host-1.json",
		".team/run.json",
		".team/events.jsonl", ".tasks/claim_events.jsonl", ".worktrees/events.jsonl", ".transcripts/alice/log.jsonl",
		".team/inbox/alice.jsonl", ".team/locks/host-1.lock",
	} {
		if fi, err := os.Stat(filepath.Join(root, name)); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", name, fi, err)
		}
	}
}

func TestForeignDocuments(t *testing.T) {
	s, root := one(t)
	tasks := s.Table(muster.TableTasks)
	path := filepath.Join(root, ".tasks", "task_1.json")
	write(t, path, "\ufeff{\"id\": 1}") // as an editor on Windows
	write(t, filepath.Join(root, ".tasks", "notes.txt"), "mine")
	write(t, filepath.Join(root, ".tasks", "task_01.json"), "{}")
	write(t, filepath.Join(root, ".tasks", "task_9223372036854775808.json"), "{}")
	d, err := tasks.Get(t.Context(), "1")
	if err != nil || string(d.Data) != `{"id": 1}` {
		t.Fatalf("%q %v", d.Data, err)
	}
	write(t, path, "\ufeff{\"owner\": \"bob\"}") // in place, without our lock
	if _, err := tasks.Put(t.Context(), "1", []byte(`{"id":1,"owner":"alice"}`), d.Rev); !errors.Is(err,
		muster.ErrStale) {
		t.Errorf("over a foreign change: %v", err)
	}
	var mark muster.Mark
	for range 2 { // read at the look, and again after it
		n := 0
		for c, err := range tasks.Changes(t.Context(), 0) {
			if err != nil || c.Key != "1" || string(c.Data) != `{"owner": "bob"}` {
				t.Errorf("%s %q %v", c.Key, c.Data, err)
			}
			mark, n = c.Mark, n+1
		}
		if n != 1 {
			t.Errorf("%d documents", n)
		}
	}
	write(t, path, "\ufeff{\"owner\": \"eve\"}") // the same size, the same moment
	n := 0
	for c, err := range tasks.Changes(t.Context(), mark) {
		if err != nil || !bytes.Contains(c.Data, []byte("eve")) {
			t.Errorf("%s %v", c.Data, err)
		}
		n++
	}
	if n != 1 {
		t.Error("a foreign change was not seen")
	}
}

func TestCorruptDocumentsConcernThemselvesOnly(t *testing.T) {
	s, root := one(t)
	tasks := s.Table(muster.TableTasks)
	write(t, filepath.Join(root, ".tasks", "task_1.json"), "{\n\"id\": 1,\n\"owner\"")
	write(t, filepath.Join(root, ".tasks", "task_2.json"), "{}")
	write(t, filepath.Join(root, ".tasks", "task_3.json"), "{\"a\":\"\n\n\xff\"}")
	write(t, filepath.Join(root, ".tasks", "task_4.json"), "")
	doc, err := tasks.Get(t.Context(), "1")
	if len(doc.Data) == 0 || !errors.Is(err, muster.ErrCorrupt) || !strings.Contains(err.Error(), "task_1.json is not JSON in line 3") {
		t.Errorf("the error is %v", err)
	}
	if _, err = tasks.Get(t.Context(), "3"); err == nil || !strings.Contains(err.Error(), "not UTF-8 text in line 3") {
		t.Errorf("the error is %v", err)
	}
	var mark muster.Mark
	got := map[string]bool{}
	for c, err := range tasks.Changes(t.Context(), 0) {
		if bad := errors.Is(err, muster.ErrCorrupt); bad != (c.Key != "2") {
			t.Errorf("%s: %v", c.Key, err)
		}
		got[c.Key], mark = true, c.Mark
	}
	if len(got) != 4 {
		t.Errorf("there came %v", got)
	}
	for c, err := range tasks.Changes(t.Context(), mark) {
		t.Errorf("%s came again: %v", c.Key, err)
	}
	write(t, filepath.Join(root, ".tasks", "task_1.json"), "{}")
	for c, err := range tasks.Changes(t.Context(), mark) {
		if err != nil || c.Key != "1" {
			t.Errorf("%s: %v", c.Key, err)
		}
	}
}

func record(n int) []byte { return fmt.Appendf(nil, `{"n":%d,"text":"some words"}`, n) }

func TestForeignLogLines(t *testing.T) {
	s, root := one(t)
	path := filepath.Join(root, ".team", "events.jsonl")
	addTo(t, path, "{\"event\": \"x\"}\r\n\n  \nnot json\n{\"a\":\"\xff\"}\n")
	require.NoError(t, did(s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, record(1))))
	var got []string
	for r, err := range s.Log().Read(t.Context(), muster.StreamEvents, 0) {
		if err != nil {
			got = append(got, "bad")
		} else {
			got = append(got, string(r.Data))
		}
	}
	if want := []string{`{"event": "x"}`, "bad", "bad", string(record(1))}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %q", got)
	}
	for n, want := range []int{0, 1, 2, 3, 4, 4} {
		p, err := s.Log().Tail(t.Context(), muster.StreamEvents, n)
		require.NoError(t, err)
		m := 0
		for _, err := range s.Log().Read(t.Context(), muster.StreamEvents, p) {
			if err == nil || errors.Is(err, muster.ErrCorrupt) { // damaged lines count too
				m++
			}
		}
		if m != want {
			t.Errorf("the tail of %d has %d", n, m)
		}
	}
}

func TestForeignMail(t *testing.T) {
	s, root := one(t)
	path := filepath.Join(root, ".team", "inbox", "alice.jsonl")
	addTo(t, path, `{"type": "message", "from": "lead", "content": "one", "timestamp": 1.5}`+"\n")
	addTo(t, path, `{"type": "plan_request", "sender": "bob", "content": "two", "ts": 2, "approved": true}`+"\n")
	addTo(t, path, `{"sender": "bob", "content": "three"}`) // no newline: json.dump
	ms, _ := pending(t, s)
	if said(ms) != "one two three" {
		t.Fatalf("there is %q", said(ms))
	}
	if m := ms[1]; m.Type != muster.MailPlan || m.From != "bob" || m.At != 2 || m.Approve == nil || !*m.Approve ||
		m.To != "alice" {
		t.Errorf("the second is %+v", m)
	}
	addTo(t, path, `{"sender": "bob", "content": "four"}`) // again none: both on one line
	require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{ID: "m5", From: "eve", Content: "five"}))
	again, end := pending(t, s)
	if said(again) != "one two three four five" {
		t.Fatalf("there is %q", said(again))
	}
	for i, m := range ms {
		if again[i].ID != m.ID || m.ID == "" {
			t.Errorf("the id of %q was %q and is %q", m.Content, m.ID, again[i].ID)
		}
	}
	require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
	addTo(t, path, `{"sender": "bob", "content": "six"}`) // and nothing follows
	_, end = pending(t, s)
	require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
	addTo(t, path, `{"sender": "bob", `) // it is at it
	if left, _ := pending(t, s); len(left) > 0 {
		t.Errorf("left is %q", said(left))
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "alice.rejected.jsonl")); err == nil {
		t.Error("what is not written yet was rejected")
	}
}

func TestRejectedLines(t *testing.T) {
	root := t.TempDir()
	var told []string
	handle := func() *file.Store {
		s := open(t, root)
		t.Cleanup(func() { s.Close() })
		s.OnReject = func(box muster.Name, line []byte, why string) {
			told = append(told, fmt.Sprintf("%s: %s", box, line))
			if why == "" {
				t.Errorf("%s was rejected without a reason", line)
			}
		}
		return s
	}
	a, b := handle(), handle()
	path := filepath.Join(root, ".team", "inbox", "alice.jsonl")
	addTo(t, path, "nonsense\n{\"x\":1}\n42\n{\"content\":7}\n{\"a\":\"\xff\"}\n")
	require.NoError(t, a.Inbox().Put(t.Context(), "alice", muster.Message{ID: "m1", From: "bob", Content: "good"}))
	addTo(t, path, `{"from":"bob","content":"bad","sum":"00000000"}`+"\n")
	for _, s := range []*file.Store{a, b, a, handle()} {
		if ms, _ := pending(t, s); said(ms) != "good" {
			t.Fatalf("there is %q", said(ms))
		}
	}
	if len(told) != 6 {
		t.Errorf("told were %q", told)
	}
	full := strings.TrimSuffix(path, ".jsonl") + ".rejected.jsonl"
	aside, err := os.ReadFile(full)
	if err != nil || bytes.Count(aside, []byte("\n")) != 6 || !bytes.Contains(aside, []byte("nonsense")) ||
		!bytes.Contains(aside, []byte(`"bytes":"`)) {
		t.Errorf("aside is %s (%v)", aside, err)
	}
	_, end := pending(t, a)
	require.NoError(t, a.Inbox().Drop(t.Context(), "alice", end))
	pending(t, handle())
	if len(told) != 6 {
		t.Errorf("after the drop told were %q", told)
	}
	require.NoError(t, os.Truncate(full, durable.MaxFile+1)) // it makes room for a new one
	addTo(t, path, "more nonsense\n")
	pending(t, a)
	if fi, err := os.Stat(full + ".old"); err != nil || fi.Size() != durable.MaxFile+1 || len(told) != 7 {
		t.Errorf("beside a full file told were %q, %v", told, err)
	}
}

// Another reader drains the box by emptying the file, as the tutorials do.
func TestForeignReader(t *testing.T) {
	s, root := one(t)
	path := filepath.Join(root, ".team", "inbox", "alice.jsonl")
	addTo(t, path, `{"sender":"bob","content":"a long one, longer than the next"}`+"\n")
	_, end := pending(t, s)
	write(t, path, "")
	if ms, _ := pending(t, s); len(ms) > 0 {
		t.Errorf("there is %q", said(ms))
	}
	addTo(t, path, `{"sender":"bob","content":"next"}`+"\n")
	ms, _, err := s.Inbox().Peek(t.Context(), "alice", end, 10)
	if err != nil || said(ms) != "next" {
		t.Errorf("after the old place: %q %v", said(ms), err)
	}
	require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
	if ms, _ := pending(t, s); said(ms) != "next" {
		t.Errorf("after the drop of what is gone: %q", said(ms))
	}
	require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{ID: "m", From: "bob", Content: "last"}))
	os.Remove(path)
	if ms, _ := pending(t, s); len(ms) > 0 {
		t.Errorf("there is %q", said(ms))
	}
}

// A late program adds to a segment between two Peeks that end at the same position. A Drop of that position keeps the
// mail, because the first reader has not got it. The same holds for a segment that was delivered before.
func TestLateMailBetweenTwoPeeks(t *testing.T) {
	for _, waits := range []string{"b", ""} { // what of the segment is not delivered
		lateMail(t, waits)
	}
}

func lateMail(t *testing.T, waits string) {
	t.Helper()
	s, root := one(t)
	put := func(content string) {
		t.Helper()
		require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: content}))
	}
	put("a")
	if waits != "" {
		put(waits)
	}
	_, end, err := s.Inbox().Peek(t.Context(), "alice", 0, 1)
	require.NoError(t, errors.Join(err, s.Inbox().Drop(t.Context(), "alice", end)))
	put("c")
	first, end := pending(t, s)
	segments, err := filepath.Glob(filepath.Join(root, ".team", "inbox", "alice.segments", "*"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("the segments are %v, %v", segments, err)
	}
	copied, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	write(t, segments[0]+".bak", string(copied)) // no part of the inbox
	addTo(t, segments[0], `{"type":"message","from":"zoe","content":"late","timestamp":1}`+"\n")
	second, again := pending(t, s)
	if said(first) != strings.TrimSpace(waits+" c") || said(second) != strings.TrimSpace(waits+" late c") || again != end {
		t.Fatalf("first %q up to %d, then %q up to %d", said(first), end, said(second), again)
	}
	require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
	left, end := pending(t, s)
	if said(left) != "late" {
		t.Errorf("after the drop there is %q", said(left))
	}
	require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
	if left, _ = pending(t, s); len(left) > 0 {
		t.Errorf("after all there is %q", said(left))
	}
}
