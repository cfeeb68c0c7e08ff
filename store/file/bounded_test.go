package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/store/file"
)

// openIn opens a store in a new directory, and writes a file below it.
func openIn(t *testing.T, name, content string) (s *file.Store, path string) {
	t.Helper()
	s, root := one(t)
	path = filepath.Join(root, name)
	write(t, path, content)
	return s, path
}

// makeHole makes a file seem to have terabytes.
func makeHole(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 1<<42); err != nil {
		tier.Missing(t, "the file system has no files with holes: "+err.Error())
	}
}

// A line that is too long is damage of that line alone: the records around it are read, counted and appended to.
func TestLineThatIsTooLong(t *testing.T) {
	long := `{"x":"` + strings.Repeat("x", durable.MaxLine) + `"}`
	s, _ := openIn(t, ".team/events.jsonl", `{"n":1}`+"\n"+long+"\n"+`{"n":2}`+"\n")
	require.NoError(t, did(s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, []byte(`{"n":3}`))))
	read := func(after muster.Pos) (text string) {
		for r, err := range s.Log().Read(t.Context(), muster.StreamEvents, after) {
			if errors.Is(err, muster.ErrCorrupt) && strings.Contains(err.Error(), "longer than 32 MiB") {
				text += "!"
			} else if err != nil {
				t.Fatal(err)
			}
			text += strings.Trim(string(r.Data), `{"n:}`)
		}
		return text
	}
	if got := read(0); got != "1!23" {
		t.Errorf("read %q", got)
	}
	for n, want := range []string{"", "3", "23", "!23", "1!23", "1!23"} {
		if at, err := s.Log().Tail(t.Context(), muster.StreamEvents, n); err != nil || read(at) != want {
			t.Errorf("the last %d are %q, %v", n, read(at), err)
		}
	}
	long = strings.Replace(long, "xxxxxxxx", "", 1) // its checksum makes it too long
	for _, rec := range []string{long, "{\"a\":\"\xff\"}"} {
		_, err := s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, []byte(rec))
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("what could not be read again was appended: %v", err)
		}
	}
}

// A hole at the end of a stream has no end that anybody could wait for: it is named at once.
func TestHoleInAStream(t *testing.T) {
	s, path := openIn(t, ".team/events.jsonl", `{"n":1}`+"\n")
	makeHole(t, path)
	n, isTold := 0, false
	for _, err := range s.Log().Read(t.Context(), muster.StreamEvents, 0) {
		if n++; err != nil {
			isTold = strings.Contains(err.Error(), path) && errors.Is(err, durable.ErrTooLarge)
		}
	}
	if n != 2 || !isTold {
		t.Errorf("%d records, told: %v", n, isTold)
	}
	_, err := s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, []byte(`{"n":2}`))
	if !errors.Is(err, muster.ErrUnavailable) || muster.HintOf(err) != "move it away" {
		t.Errorf("append: %v (%s)", err, muster.HintOf(err))
	}
	if _, err := s.Log().Tail(t.Context(), muster.StreamEvents, 3); err == nil {
		t.Error("its end was found")
	}
}

// What nobody can read keeps no mail from its recipient.
func TestMailBesideWhatIsTooLarge(t *testing.T) {
	for name, content := range map[string]string{
		"a long line":  strings.Repeat("x", durable.MaxLine+1) + "\n",
		"many objects": strings.Repeat("[]", 100_000) + "\n",
		"many lines":   strings.Repeat("x\n", 100_000),
		"deep":         strings.Repeat("[", 1<<20) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			before, err := muster.MarshalLine(muster.Message{From: "bob", Content: "before"})
			require.NoError(t, err)
			s, path := openIn(t, ".team/inbox/alice.jsonl", string(before)+"\n"+content)
			require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "after"}))
			mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
			if err != nil || len(mails) < 2 || mails[0].Content != "before" || mails[len(mails)-1].Content != "after" {
				t.Errorf("%d mails, %v", len(mails), err)
			}
			aside := strings.TrimSuffix(path, ".jsonl") + ".rejected.jsonl"
			if fi, err := os.Stat(aside); err != nil || fi.Size() > 1<<20 {
				t.Errorf("set aside: %v, %v", fi, err)
			}
		})
	}
	s, path := openIn(t, ".team/inbox/alice.jsonl", "{}\n")
	makeHole(t, path)
	require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "after"}))
	mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
	if err != nil || len(mails) == 0 || mails[len(mails)-1].Content != "after" {
		t.Errorf("beside a hole: %d mails, %v", len(mails), err)
	}
}

// Documents that are too large or too deep are named, and the others are listed.
func TestDocumentsThatAreTooLarge(t *testing.T) {
	s, path := openIn(t, ".tasks/task_1.json", `{"id":1}`)
	for n, content := range []string{strings.Repeat(`[`, 1<<20), `"` + strings.Repeat("x", 2<<20) + `"`, "\xff"} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), fmt.Sprintf("task_%d.json", n+2)), []byte(content),
			0o600))
	}
	good, bad := 0, 0
	for _, err := range s.Table(muster.TableTasks).Changes(t.Context(), 0) {
		if err == nil {
			good++
		} else if errors.Is(err, muster.ErrCorrupt) {
			bad++
		}
	}
	if good != 1 || bad != 3 {
		t.Errorf("%d good, %d bad", good, bad)
	}
	large := `"` + strings.Repeat("x", 2<<20) + `"`
	for _, data := range []string{large, "\"\xff\""} {
		_, err := s.Table(muster.TableTasks).Put(t.Context(), "9", []byte(data), muster.None)
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("what could not be read again was written: %v", err)
		}
	}
	for _, table := range []string{muster.TableTeam, "damaged"} { // their documents may be larger
		require.NoError(t, did(s.Table(table).Put(t.Context(), "config", []byte(large), muster.None)))
		require.NoError(t, did(s.Table(table).Get(t.Context(), "config")))
	}
	if _, err := s.Table("inbox").Get(t.Context(), "alice"); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("the inboxes are a table: %v", err)
	}
}

// Who writes to a member that does not read is told so. What the runtime has to say still comes, and so does all mail
// once the member has read.
func TestUnreadMailIsBounded(t *testing.T) {
	s, _ := openIn(t, ".team/run.json", "{}")
	text := strings.Repeat("x", 60_000)
	put := func(m muster.Message) error { return s.Inbox().Put(t.Context(), "alice", m) }
	sent := 0
	for err := error(nil); err == nil && sent < 1000; sent++ {
		if err = put(muster.Message{Type: muster.MailMessage, From: "bob", Content: text}); errors.Is(err, muster.ErrHeld) {
			break
		}
		require.NoError(t, err)
	}
	if sent < 200 || sent > 300 {
		t.Errorf("%d mails were sent", sent)
	}
	if err := errors.Join(put(muster.Message{Type: muster.MailShutdown, From: "lead"}),
		put(muster.Message{Type: muster.MailMessage, From: muster.System})); err != nil {
		t.Errorf("a request: %v", err)
	}
	if err := put(muster.Message{Type: muster.MailBroadcast, From: "bob"}); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("a broadcast: %v", err)
	}
	// One that reads a little makes room for a little.
	for n, want := range []error{muster.ErrHeld, nil} {
		_, end, err := s.Inbox().Peek(t.Context(), "alice", 0, []int{1, 100}[n])
		require.NoError(t, errors.Join(err, s.Inbox().Drop(t.Context(), "alice", end)))
		if n == 0 {
			err = errors.Join(put(muster.Message{Type: "x", From: "lead", Content: text}),
				put(muster.Message{Type: "x", From: "lead", Content: text}))
		}
		if got := put(muster.Message{Type: muster.MailMessage, From: "bob", Content: "x"}); err != nil ||
			!errors.Is(got, want) {
			t.Errorf("after reading: %v, %v", got, err)
		}
	}
}
