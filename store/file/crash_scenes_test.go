package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/testing/simfs"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/store/file"
)

// crew is one process's view of a simulated state, through the rooms that the program uses.
type crew struct {
	ctx   context.Context
	files *durable.Files
	store recorded
	*board.Board
	journal *journal.Journal
	roster  *roster.Roster
	post    *mailbox.Mail
	reqs    *requests.Requests

	acked map[string]int // what a scene was told, and when, in calls
	now   int            // the moment of the crash; acks after it are not known
}

const simRoot = "/r"

// enter opens the state as a process does.
func enter(ctx context.Context, disk durable.FS, h *history) (*crew, error) {
	files := durable.New(disk)
	s, err := file.OpenOn(files, simRoot)
	if err != nil {
		return nil, err
	}
	c := &crew{ctx: ctx, files: files, store: recorded{s, h}, acked: map[string]int{}}
	c.journal = journal.New(c.store.Log())
	c.Board = board.New(c.store, c.journal)
	c.roster = roster.New(c.store, c.journal, "t")
	c.post = mailbox.New(c.store, c.journal, func(context.Context, muster.Name) (bool, []muster.Name,
		error) {
		return true, nil, nil
	})
	c.reqs = requests.New(c.store, c.post, c.journal)
	c.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error {
		_, err := c.post.Send(ctx, muster.Message{ID: muster.MessageID(fmt.Sprintf("done-%d", t.ID)),
			From: muster.System, To: muster.Lead, Content: "done"})
		return err
	})
	c.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { return nil })
	return c, nil
}

// ack notes that something was told to be done.
func (c *crew) ack(what ...any) { c.acked[fmt.Sprint(what...)] = c.store.h.sim.Calls() }

// acks is ack unless there is an error, which it returns.
func (c *crew) acks(err error, what ...any) error {
	if err == nil {
		c.ack(what...)
	}
	return err
}

// knows reports whether that was told before the crash.
func (c *crew) knows(what ...any) bool {
	at, ok := c.acked[fmt.Sprint(what...)]
	return ok && at <= c.now
}

// scene is a piece of work on one state: what is there before it, the calls that are cut short, and what another
// process does and finds afterwards, whose error is a violation.
type scene struct {
	name   string
	cuts   int // at how many bytes each write is torn; 0: at every one
	before func(*crew) error
	run    func(*crew) error
	after  func(c, was *crew) error
}

func steps(fs ...func() error) error {
	for i, f := range fs {
		if err := f(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// did makes a step of a call whose result does not matter.
func did[T any](_ T, err error) error { return err }

var scenes = []scene{
	{name: "table", cuts: 24, run: tableRun, after: tableAfter},
	{name: "log", run: logRun, after: logAfter},
	{name: "torn tail", before: func(c *crew) error {
		return errors.Join(did(c.store.Log().Append(c.ctx, "events", 0, []byte(`{"event":"a"}`))),
			appendRaw(c, paths.Dir(simRoot).Team()+"/events.jsonl", `{"event":"torn, of a dead program","te`))
	}, run: func(c *crew) error {
		return steps(
			func() error {
				return did(c.store.Log().Append(c.ctx, "events", muster.Anywhere, []byte(`{"event":"b"}`)))
			},
			func() error {
				return did(c.store.Log().Append(c.ctx, "events", muster.Anywhere, []byte(`{"event":"c"}`)))
			},
		)
	}, after: logAfter},
	{name: "rotation", cuts: 20, run: rotationRun, after: rotationAfter},
	{name: "inbox", cuts: 100, run: inboxRun, after: deliverAll},
	{name: "segments", cuts: 30, before: inboxRun, run: segmentsRun, after: deliverAll},
	{name: "requests", cuts: 40, run: requestsRun, after: requestsAfter},
	{name: "transcript", run: transcriptRun, after: transcriptAfter},
	{name: "lanes' index", cuts: 40, run: indexRun, after: indexAfter},
}

// appendRaw writes as another program does: without lock, checksum and sync.
func appendRaw(c *crew, path, data string) error {
	f, err := c.files.FS().OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(data))
	return errors.Join(err, f.Close())
}

func put(c *crew, table, key, data string, rev *muster.Rev) func() error {
	return func() (err error) {
		*rev, err = c.store.Table(table).Put(c.ctx, key, []byte(data), *rev)
		return err
	}
}

func tableRun(c *crew) error {
	var a, b, again muster.Rev
	long := `{"name":"alice","text":"` + strings.Repeat("long ", 250) + `"}`
	return steps(
		put(c, "members", "alice", `{"name":"alice","n":1}`, &a),
		put(c, "members", "alice", `{"name":"alice","n":2}`, &a),
		put(c, "members", "alice", long, &a),
		put(c, "members", "bob", `{"name":"bob"}`, &b),
		func() error { return c.store.Table("members").Delete(c.ctx, "bob", b) },
		put(c, "members", "bob", `{"name":"bob","again":true}`, &again),
		func() error { return c.store.Table("members").Delete(c.ctx, "bob", again) },
		put(c, "members", "alice", `{"name":"alice","n":3}`, &a),
	)
}

// tableAfter changes every document that is there, and makes one.
func tableAfter(c, _ *crew) error {
	for _, name := range tables {
		for d, err := range c.store.Table(name).Changes(c.ctx, 0) {
			if err != nil {
				return err
			}
			if _, err := c.store.Table(name).Put(c.ctx, d.Key, []byte(`{"after":true}`), d.Rev); err != nil {
				return err
			}
		}
	}
	return did(c.store.Table("members").Put(c.ctx, "carol", []byte(`{}`), muster.None))
}

func logRun(c *crew) error {
	l := c.store.Log().(recordedLog)
	var end muster.Pos
	add := func(recs ...string) func() error {
		return func() (err error) {
			var b [][]byte
			for _, r := range recs {
				b = append(b, []byte(r))
			}
			end, err = l.Append(c.ctx, "transcripts/alice", end, b...)
			return err
		}
	}
	soon := func(text string) func() error {
		return func() error { return did(l.AppendSoon(c.ctx, "events", []byte(`{"event":"`+text+`"}`))) }
	}
	return steps(add(`{"n":1}`), add(`{"n":2}`, `{"n":3}`, `{"n":4}`),
		add(`{"n":5,"text":"`+strings.Repeat("x", 600)+`"}`),
		soon("a"), soon("b"), soon("c"),
		func() error { return did(l.Append(c.ctx, "events", muster.Anywhere, []byte(`{"event":"d"}`))) },
		soon("e"), soon("f"),
		func() error { return did(l.Append(c.ctx, "events", muster.Anywhere, []byte(`{"event":"g"}`))) },
		add(`{"n":6}`))
}

// rotationRun writes streams on a disk where they are rotated every few lines.
func rotationRun(c *crew) error {
	c.store.RotateAt(60)
	l := c.store.Log().(recordedLog)
	var all []func() error
	for n := range 24 {
		rec := fmt.Appendf(nil, `{"n":%d}`, n)
		stream := []string{"events", "transcripts/alice"}[n/12]
		all = append(all, func() error {
			if n%3 == 2 { // the last one before a rotation, which the first one after it makes durable
				return did(l.AppendSoon(c.ctx, stream, rec))
			}
			return did(l.Append(c.ctx, stream, muster.Anywhere, rec))
		})
	}
	return steps(all...)
}

// rotationAfter goes on with the streams, and rotates them again.
func rotationAfter(c, was *crew) error {
	c.store.RotateAt(60)
	return steps(func() error { return logAfter(c, was) }, func() error { return logAfter(c, was) })
}

// logAfter appends where the streams end.
func logAfter(c, _ *crew) error {
	l := c.store.Log()
	for _, stream := range []string{"transcripts/alice", "events"} {
		end, err := l.Tail(c.ctx, stream, 0)
		if err != nil {
			return err
		}
		if end, err = l.Append(c.ctx, stream, end, []byte(`{"after":1}`)); err != nil {
			return err
		}
		if _, err = l.Append(c.ctx, stream, end, []byte(`{"after":2}`)); err != nil {
			return err
		}
		from, err := l.Tail(c.ctx, stream, 2)
		if err != nil {
			return err
		}
		n := 0
		for r, err := range l.Read(c.ctx, stream, from) {
			if n++; err != nil || string(r.Data) != fmt.Sprintf(`{"after":%d}`, n) {
				return fmt.Errorf("the end of %s is %q, %w", stream, r.Data, err)
			}
		}
		if n != 2 {
			return fmt.Errorf("%s ends with %d records", stream, n)
		}
	}
	return nil
}

// send mails to alice; its acknowledgement is noted.
func send(c *crew, ids ...string) error {
	for _, id := range ids {
		m := muster.Message{ID: muster.MessageID(id), From: muster.Name("sender-" + id[:1]), To: "alice",
			Content: "text of " + id}
		if err := c.store.Inbox().Put(c.ctx, "alice", m); err != nil {
			return err
		}
		c.ack("mail ", id)
	}
	return nil
}

// deliver does what a member does between two turns: mail into the transcript, then out of the box.
func deliver(c *crew, most int) error {
	t, err := transcript.Open(c.ctx, c.store.Log(), "alice")
	if err != nil {
		return err
	}
	all, end, err := c.store.Inbox().Peek(c.ctx, "alice", 0, most)
	if err != nil || len(all) == 0 {
		return err
	}
	var fresh []muster.Message
	var ids []muster.MessageID
	for _, m := range all {
		if !t.Delivered(m.ID) && !slices.Contains(ids, m.ID) {
			fresh, ids = append(fresh, m), append(ids, m.ID)
		}
	}
	if len(fresh) > 0 {
		if err := t.User(c.ctx, []llm.Part{llm.Text{Text: mailbox.Render(fresh, 0)}}, ids); err != nil {
			return err
		}
		for _, id := range ids {
			c.ack("delivered ", id)
		}
	}
	return c.store.Inbox().Drop(c.ctx, "alice", end)
}

func inboxRun(c *crew) error {
	return steps(
		func() error { return send(c, "a1", "b1", "a2") },
		func() error { return deliver(c, 2) },
		func() error { return send(c, "a3") },
		func() error { return deliver(c, 10) },
		func() error { return send(c, "b2") },
	)
}

// segmentsRun goes on after the grace, so that delivered segments are removed. It runs in a bubble of synctest.
func segmentsRun(c *crew) error {
	wait := func() error { time.Sleep(5 * time.Second); return nil }
	return steps(
		func() error { return deliver(c, 10) }, wait,
		func() error { return send(c, "a4", "b3") }, func() error { return deliver(c, 1) }, wait,
		func() error { return send(c, "a5") }, func() error { return deliver(c, 10) }, wait,
		func() error { return deliver(c, 10) }, wait,
		func() error { return send(c, "b4") }, func() error { return deliver(c, 10) },
		func() error { return send(c, "a6") },
	)
}

// letters are the ids of all mails that were ever sent in these scenes, in the order of their senders.
var letters = []string{"a1", "a2", "a3", "a4", "a5", "a6", "b1", "b2", "b3", "b4"}

// deliverAll sends again what was not acknowledged, delivers all, and counts. It runs in a bubble of synctest.
func deliverAll(c, was *crew) error {
	for _, id := range letters {
		_, sent := was.acked["mail "+id]
		if sent && !was.knows("mail ", id) {
			if err := send(c, id); err != nil {
				return err
			}
		}
	}
	for range 3 {
		if err := deliver(c, 2); err != nil {
			return err
		}
		time.Sleep(3 * time.Second) // delivered segments are removed
	}
	if err := errors.Join(deliver(c, 100), deliver(c, 100)); err != nil {
		return err
	}
	if left, _, err := c.store.Inbox().Peek(c.ctx, "alice", 0, 100); err != nil || len(left) > 0 {
		return fmt.Errorf("pending after all was delivered: %v, %w", left, err)
	}
	got := map[muster.MessageID]int{}
	var order []string
	for e, err := range transcript.Read(c.ctx, c.store.Log(), "alice", 0) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		} else if err != nil {
			return err
		}
		for _, id := range e.Mail {
			got[id]++
			order = append(order, string(id))
			text := e.Message.Parts[0].(llm.Text).Text
			if !strings.Contains(text, "text of "+string(id)) {
				return fmt.Errorf("mail %s was delivered as %q", id, text)
			}
		}
	}
	for _, id := range letters {
		_, sent := was.acked["mail "+id]
		if n := got[muster.MessageID(id)]; n > 1 || sent && n == 0 {
			return fmt.Errorf("mail %s was delivered %d times: %q", id, n, order)
		}
	}
	for id := range got {
		if !slices.Contains(letters, string(id)) {
			return fmt.Errorf("mail %s was delivered, and nobody sent it", id)
		}
	}
	return nil
}

func create(c *crew, subject string, on ...muster.TaskID) func() error {
	return func() error {
		t, err := c.Create(c.ctx, board.Draft{Subject: subject, BlockedBy: on, CreatedBy: muster.Lead})
		if err == nil {
			c.ack("task ", t.ID)
		}
		return err
	}
}

func requestsRun(c *crew) error {
	ask := func(id string, k muster.RequestKind) func() error {
		return func() error {
			r := muster.Request{ID: muster.RequestID(id), Kind: k, From: "alice", To: muster.Lead, TaskID: 1,
				Plan: "my plan", Reason: "why"}
			_, err := c.reqs.Ask(c.ctx, r)
			if err == nil {
				c.ack("asked ", id)
			}
			return err
		}
	}
	decide := func(id string, yes bool) func() error {
		return func() error {
			_, _, err := c.reqs.Decide(c.ctx, muster.RequestID(id), muster.Lead, yes, "so be it")
			if err == nil {
				c.ack("decided ", id)
			}
			return err
		}
	}
	return steps(ask("00000001", muster.AskPlan), decide("00000001", true), ask("00000002", muster.AskPermission),
		decide("00000002", false))
}

// requestsAfter decides the other way: what was decided stays. Each mail is there.
func requestsAfter(c, was *crew) error {
	if err := c.reqs.Settle(c.ctx); err != nil {
		return err
	}
	box := func(name muster.Name) map[muster.MessageID]bool {
		ids := map[muster.MessageID]bool{}
		mails, _, _ := c.store.Inbox().Peek(c.ctx, name, 0, 100)
		for _, m := range mails {
			ids[m.ID] = true
		}
		return ids
	}
	for id, yes := range map[string]bool{"00000001": true, "00000002": false} {
		r, err := c.reqs.Get(c.ctx, muster.RequestID(id))
		if errors.Is(err, muster.ErrNotFound) && !was.knows("asked ", id) {
			continue
		}
		if err != nil {
			return err
		}
		if !requests.Final(r) && !box(muster.Lead)[muster.MessageID("ask-"+id)] {
			return fmt.Errorf("request %s waits and nobody was asked", id)
		}
		decided := requests.Final(r)
		if was.knows("decided ", id) && !decided {
			return fmt.Errorf("request %s waits again", id)
		}
		if r, _, err = c.reqs.Decide(c.ctx, r.ID, muster.Lead, !yes, "other"); err != nil {
			return err
		}
		if approved := r.Status == muster.RequestApproved; approved != (yes == decided) {
			return fmt.Errorf("request %s is %s, it was decided before: %v", id, r.Status, decided)
		}
		if id == "00000001" && !box("alice")[muster.MessageID("answer-"+id)] {
			return fmt.Errorf("the answer to %s was not mailed", id)
		}
	}
	return nil
}

func transcriptRun(c *crew) error {
	t, err := transcript.Open(c.ctx, c.store.Log(), "alice")
	if err != nil {
		return err
	}
	call := llm.Call{ID: "c1", Name: "shell", Input: json.RawMessage(`{"command":"make"}`)}
	return steps(
		func() error { return t.User(c.ctx, []llm.Part{llm.Text{Text: "go"}}, []muster.MessageID{"m1"}) },
		func() error { c.ack("user"); return nil },
		func() error {
			return t.Reply(c.ctx, llm.Reply{Message: llm.Message{Parts: []llm.Part{llm.Text{Text: "well"}, call}},
				Stop: llm.StopTools})
		},
		func() error { c.ack("reply"); return nil },
		func() error { return t.Mark(c.ctx, "started") },
		func() error { return t.Result(c.ctx, llm.Result{ID: "c1", Parts: []llm.Part{llm.Text{Text: "made"}}}) },
		func() error { c.ack("result"); return nil },
		func() error { return t.Fresh(c.ctx, []llm.Part{llm.Text{Text: "anew"}}, nil) },
	)
}

// transcriptAfter goes on at the turn that was acknowledged.
func transcriptAfter(c, was *crew) error {
	t, err := transcript.Open(c.ctx, c.store.Log(), "alice")
	if err != nil {
		return err
	}
	open := t.Unanswered()
	if was.knows("user") && !t.Delivered("m1") {
		return errors.New("a delivered mail is not delivered any more")
	}
	if was.knows("result") && len(open) > 0 {
		return errors.New("an answered call is unanswered")
	}
	for _, call := range open {
		if err := t.Result(c.ctx, llm.Result{ID: call.ID,
			Parts: []llm.Part{llm.Text{Text: "interrupted"}}}); err != nil {
			return err
		}
	}
	if err := t.User(c.ctx, []llm.Part{llm.Text{Text: "after"}}, []muster.MessageID{"m2"}); err != nil {
		return err
	}
	again, err := transcript.Open(c.ctx, c.store.Log(), "alice")
	if err != nil {
		return err
	}
	if !again.Delivered("m2") || fmt.Sprint(again.Messages()) != fmt.Sprint(t.Messages()) {
		return errors.New("what was read again is another conversation")
	}
	return nil
}

// indexRun does with the lanes' index and a file beside it what rooms do that have no table: Create, Replace, Truncate,
// Rename, Remove.
func indexRun(c *crew) error {
	d := paths.Dir(simRoot)
	replace := func(n int) func() error {
		return func() error {
			return c.acks(c.files.Replace(d.Index(), []byte(fmt.Sprintf(`{"worktrees":{"task-%d":{}}}`, n))),
				"index ", n)
		}
	}
	note := d.Worktrees() + "/note"
	moved := d.Team() + "/archive/note"
	return steps(replace(1), replace(2),
		func() error { return c.acks(c.files.Create(note, []byte("12345")), "created") },
		func() error { return c.acks(c.files.Truncate(note, 3), "cut") },
		func() error { return c.acks(c.files.Rename(note, moved), "moved") },
		replace(3),
		func() error { return c.acks(c.files.Remove(moved), "removed") },
	)
}

func indexAfter(c, was *crew) error {
	d := paths.Dir(simRoot)
	read := func(path string) string {
		f, err := c.files.FS().OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			return ""
		}
		defer f.Close()
		b := make([]byte, 100)
		n, _ := f.Read(b)
		return string(b[:n])
	}
	index, last := read(d.Index()), 0
	for n := range 4 {
		if was.knows("index ", n) {
			last = n
		}
	}
	may := []string{}
	for n := last; n <= min(last+1, 3); n++ {
		if n == 0 {
			may = append(may, "")
		} else {
			may = append(may, fmt.Sprintf(`{"worktrees":{"task-%d":{}}}`, n))
		}
	}
	if !slices.Contains(may, index) {
		return fmt.Errorf("the index says %q, and may say %q", index, may)
	}
	old, moved := read(d.Worktrees()+"/note"), read(d.Team()+"/archive/note")
	switch {
	case was.knows("removed") && moved != "", was.knows("moved") && !was.knows("removed") && moved != "123" &&
		moved != "",
		was.knows("moved") && old != "", was.knows("cut") && !was.knows("moved") && old != "123" && moved != "123",
		was.knows("created") && old == "" && moved == "" && !was.knows("moved"):
		return fmt.Errorf("the note says %q, moved %q", old, moved)
	}
	return c.files.Replace(d.Index(), []byte(`{}`))
}

// newDisk is an empty disk with the repository's root.
func newDisk() *simfs.FS {
	sim := simfs.New()
	if err := sim.Mkdir(simRoot, 0o700); err != nil {
		panic(err)
	}
	sim.Settle()
	return sim
}
