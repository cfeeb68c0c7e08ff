package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/board"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// These tests play a disk that gives back other bytes than were written.

// contents are all files of a disk, by path.
func contents(t *testing.T, sim *simfs.FS) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := sim.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			f, err := sim.OpenFile(name, os.O_RDONLY, 0)
			require.NoError(t, err)
			fi, _ := f.Stat()
			all[name] = make([]byte, fi.Size())
			if n, err := f.Read(all[name]); int64(n) < fi.Size() {
				t.Fatal(n, err)
			}
			f.Close()
		}
	}
	walk("/")
	return all
}

// diskOf is a disk with these files.
func diskOf(t *testing.T, all map[string][]byte) *simfs.FS {
	t.Helper()
	sim := newDisk()
	for name, data := range all {
		parts := strings.Split(path.Dir(name)[1:], "/")
		for i := range parts {
			if err := sim.Mkdir("/"+path.Join(parts[:i+1]...), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		f, err := sim.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, errors.Join(err, f.Close()))
	}
	sim.Settle()
	return sim
}

// with is all but one file, which has that.
func with(all map[string][]byte, name string, data []byte) map[string][]byte {
	other := maps.Clone(all)
	other[name] = data
	return other
}

func sim(t *testing.T, all map[string][]byte) *crew {
	t.Helper()
	disk := diskOf(t, all)
	c, err := enter(t.Context(), disk, newHistory(disk))
	require.NoError(t, err)
	c.store.OnReject = func(box muster.Name, _ []byte, why string) { // as the program does
		_ = c.journal.Emit(context.Background(), muster.Event{Kind: journal.MailRejected, Member: box,
			Fields: map[string]any{"text": why}})
	}
	return c
}

// flips are three other values of each byte from one place to another.
func flips(data []byte, from, to int, f func(at int, damaged []byte)) {
	for at := from; at < to; at++ {
		for _, x := range []byte{0x01, 0x20, 0xff} {
			damaged := bytes.Clone(data)
			damaged[at] ^= x
			f(at, damaged)
		}
	}
}

// Each byte of a record is flipped, in every stream: no other content is ever taken for the record, its neighbours are
// there, and the stream goes on. A flipped newline makes one of two lines, so the next record is then part of the
// damage.
func TestFlippedBytesOfRecords(t *testing.T) {
	d := paths.Dir(simRoot)
	for stream, file := range map[string]string{
		muster.StreamEvents: d.Team() + "/events.jsonl", muster.StreamClaims: d.Tasks() + "/claim_events.jsonl",
		muster.StreamLanes: d.Worktrees() + "/events.jsonl", transcript.Stream("alice"): d.Transcripts() +
			"/alice/log.jsonl",
	} {
		t.Run(strings.ReplaceAll(stream, "/", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := sim(t, nil)
				recs := []string{`{"event":"one","n":1}`, `{"event":"two","text":"the one that is hit","n":2}`,
					`{"event":"three","n":3}`, `{"event":"four"}`}
				for _, r := range recs {
					require.NoError(t, did(c.store.Log().Append(t.Context(), stream, muster.Anywhere, []byte(r))))
				}
				c.store.Close()
				all := contents(t, c.store.h.sim)
				data := all[file]
				from := bytes.IndexByte(data, '\n') + 1
				to := from + bytes.IndexByte(data[from:], '\n') + 1
				n := 0
				flips(data, from, to, func(at int, damaged []byte) {
					n++
					c := sim(t, with(all, file, damaged))
					defer c.store.Close()
					want := slices.Delete(slices.Clone(recs), 1, 2)
					if at == to-1 {
						want = slices.Delete(slices.Clone(recs), 1, 3)
					}
					got, bad, err := records(t.Context(), c.store, stream)
					if err != nil || bad == 0 || !slices.Equal(got, want) {
						t.Fatalf("byte %d: %q, %d damaged, %v", at, got, bad, err)
					}
					if _, err := c.store.Log().Append(t.Context(), stream, muster.Anywhere,
						[]byte(`{"event":"new"}`)); err != nil {
						t.Fatal(err)
					}
					if got, _, err = records(t.Context(), c.store, stream); err != nil ||
						!slices.Equal(got, append(want, `{"event":"new"}`)) {
						t.Fatalf("byte %d, appended: %q, %v", at, got, err)
					}
				})
				t.Logf("%d flips", n)
			})
		})
	}
}

// Each byte of a mail is flipped: no other text is ever delivered, the damaged line is set aside and told of, its
// neighbours are delivered once, and mail goes on.
func TestFlippedBytesOfMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := paths.Dir(simRoot).Inbox() + "/alice.jsonl"
		c := sim(t, nil)
		require.NoError(t, send(c, "a1", "b1", "a2", "b2"))
		c.store.Close()
		all := contents(t, c.store.h.sim)
		data := all[file]
		from := bytes.IndexByte(data, '\n') + 1
		to := from + bytes.IndexByte(data[from:], '\n') + 1
		n := 0
		flips(data, from, to, func(at int, damaged []byte) {
			n++
			c := sim(t, with(all, file, damaged))
			defer c.store.Close()
			want := []muster.MessageID{"a1", "a2", "b2"}
			if at == to-1 { // two mails on one line: the first of them is whole
				want = []muster.MessageID{"a1", "b1", "b2"}
			}
			require.NoError(t, errors.Join(deliver(c, 10), send(c, "a3"), deliver(c, 10)))
			var got []muster.MessageID
			for e, err := range transcript.Read(t.Context(), c.store.Log(), "alice", 0) {
				require.NoError(t, err)
				got = append(got, e.Mail...)
			}
			also := append(slices.Clone(want), "a3")
			if at == to-1 && slices.Equal(got, []muster.MessageID{"a1", "b1", "a2", "b2", "a3"}) {
				return // a blank instead of the newline
			}
			if !slices.Equal(got, also) {
				t.Fatalf("byte %d: delivered was %q", at, got)
			}
			if count(kinds(t, c), journal.MailRejected) == 0 {
				t.Fatalf("byte %d: nobody was told", at)
			}
			if aside := contents(t,
				c.store.h.sim)[paths.Dir(simRoot).Inbox()+"/alice.rejected.jsonl"]; len(aside) == 0 {
				t.Fatalf("byte %d: nothing was set aside", at)
			}
		})
		t.Logf("%d flips", n)
	})
}

// kinds are the events so far; count is how many of one kind.
func kinds(t *testing.T, c *crew) (all []muster.Event) {
	t.Helper()
	for e, err := range c.journal.Read(t.Context(), 0) {
		if err == nil {
			all = append(all, e.Event)
		} else if !errors.Is(err, muster.ErrCorrupt) {
			t.Fatal(err)
		}
	}
	return all
}

func count(events []muster.Event, kind string) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// wholeTeam is a state with something of everything.
func wholeTeam(t *testing.T) map[string][]byte {
	c := sim(t, nil)
	tr, err := transcript.Open(t.Context(), c.store.Log(), "alice")
	require.NoError(t, err)
	var rev muster.Rev
	err = steps(create(c, "one"), create(c, "two", 1), create(c, "three"), create(c, "four"),
		func() error { return c.Delete(c.ctx, 4, false) }, // makes meta.json
		func() error { return did(c.roster.Join(c.ctx, "us")) },
		func() error { return did(c.roster.Add(c.ctx, muster.Member{Name: "alice", Role: "dev"})) },
		func() error { return did(c.roster.Add(c.ctx, muster.Member{Name: "bob", Role: "dev"})) },
		func() error { return c.roster.Project(c.ctx) },
		func() error { return send(c, "a1", "b1", "a2") },
		func() error {
			for _, id := range []muster.RequestID{"00000001", "00000002"} {
				if _, err := c.reqs.Ask(c.ctx, muster.Request{ID: id, Kind: muster.AskPermission, From: "alice",
					To: muster.Lead, Reason: "why"}); err != nil {
					return err
				}
			}
			return nil
		},
		put(c, muster.TableTeam, "run", `{"team":"t","goal":"g"}`, &rev),
		func() error { return tr.User(c.ctx, []llm.Part{llm.Text{Text: "go"}}, nil) },
		func() error { return tr.Mark(c.ctx, "marked") },
		func() error { return did(c.Claim(c.ctx, 3, board.Claim{Owner: "bob"})) },
	)
	require.NoError(t, err)
	c.store.Close()
	return contents(t, c.store.h.sim)
}

// Every file is cut at every byte: what is cut is corrupt, or set aside, and said to be so; everything else is read,
// and the work goes on.
func TestCutFiles(t *testing.T) {
	var all map[string][]byte
	synctest.Test(t, func(t *testing.T) { all = wholeTeam(t) })
	for _, name := range []string{".tasks/task_2.json", ".tasks/meta.json", ".team/members/alice.json",
		".team/requests/00000001.json", ".team/run.json",
		".team/config.json", ".team/hosts/host-1.json", ".team/inbox/alice.jsonl", ".transcripts/alice/log.jsonl",
		".team/events.jsonl",
		".tasks/claim_events.jsonl"} {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				data, is := all[simRoot+"/"+name]
				if !is || len(data) == 0 {
					t.Fatal("there is no such file")
				}
				for n := range data {
					if !inSample(n) {
						continue
					}
					c := sim(t, with(all, simRoot+"/"+name, data[:n]))
					err := readCut(c, all, name, data[:n])
					if line := n > 0 && data[n-1] == '\n' || data[n] == '\n'; err == nil &&
						(line || n%(7+len(data)/50) == 0) {
						err = workCut(t, c, name, data[:n])
					} else if err == nil {
						err = errors.Join(logAfter(c, nil), send(c, "a3"),
							did(c.store.Table("members").Put(c.ctx, "zoe", []byte("{}"), muster.None)))
					}
					if err != nil {
						t.Fatalf("cut at byte %d: %v", n, err)
					}
					c.store.Close()
				}
				t.Logf("%d cuts", len(data))
			})
		})
	}
}

// readCut looks whether everything but what was cut can be read.
func readCut(c *crew, all map[string][]byte, name string, data []byte) error {
	broken := strings.HasSuffix(name, ".json") && !json.Valid(data)
	for _, table := range tables {
		for d, err := range c.store.Store.Table(table).Changes(c.ctx, 0) {
			hit := strings.HasSuffix(name, "/"+d.Key+".json") || strings.HasSuffix(name, "/task_"+d.Key+".json")
			if hit && broken != errors.Is(err, muster.ErrCorrupt) || !hit && err != nil {
				return fmt.Errorf("table %s, %q: %w", table, d.Key, err)
			}
		}
	}
	// Lines: those before the cut are there.
	for stream, file := range map[string]string{"events": ".team/events.jsonl",
		"claim_events": ".tasks/claim_events.jsonl", "transcripts/alice": ".transcripts/alice/log.jsonl"} {
		want := bytes.Count(all[simRoot+"/"+file], []byte("\n"))
		if file == name {
			want = bytes.Count(data, []byte("\n"))
		}
		got, bad, err := records(c.ctx, c.store, stream)
		if err != nil || bad > 0 || len(got) != want {
			return fmt.Errorf("stream %s has %d records and %d damaged ones, of %d: %w", stream, len(got), bad, want,
				err)
		}
	}
	return nil
}

// workCut lets the rooms look at it, and work.
func workCut(t *testing.T, c *crew, name string, data []byte) error {
	broken := strings.HasSuffix(name, ".json") && !json.Valid(data)
	lost := 0
	if broken && strings.Contains(name, "task_") {
		lost = 1
	}
	ended, cancel := context.WithCancel(c.ctx)
	cancel()
	err := steps(
		func() error {
			tasks, err := c.List(c.ctx)
			if len(tasks) != 3-lost || len(c.Corrupt()) != lost {
				return fmt.Errorf("%d tasks, unreadable are %v, %w", len(tasks), c.Corrupt(), err)
			}
			return err
		},
		func() error { return did(c.roster.List(c.ctx)) },
		func() error { return did(c.reqs.Pending(c.ctx)) },
		func() error { c.roster.Projector(ended); return nil },
		func() error { return c.Settle(c.ctx) },
		create(c, "new"),
		func() error {
			t1, err := c.Claim(c.ctx, 1, board.Claim{Owner: "bob"})
			return errors.Join(err, did(c.Complete(c.ctx, 1, t1.Fence, board.Outcome{})))
		},
		func() error {
			return did(c.roster.Update(c.ctx, "bob", func(m *muster.Member) { m.Status = muster.Idle }))
		},
		func() error { return did(c.roster.Add(c.ctx, muster.Member{Name: "carol", Role: "dev"})) },
		func() error { return did(c.roster.Join(c.ctx, "new")) },
		func() error {
			_, _, err := c.reqs.Decide(c.ctx, "00000002", muster.Lead, true, "yes")
			return err
		},
		func() error { return send(c, "a3") },
		func() error { return deliver(c, 20) },
		func() error { return logAfter(c, nil) },
	)
	if err != nil {
		return err
	}
	events := kinds(t, c)
	told, _, err := c.store.Inbox().Peek(c.ctx, muster.Lead, 0, 100)
	if err != nil {
		return err
	}
	told = slices.DeleteFunc(told, func(m muster.Message) bool {
		return m.Type != muster.MailError ||
			m.From != muster.System
	})
	once := 0
	if broken && !strings.HasSuffix(name, "run.json") { // no room reads it: package workspace does
		once = 1
	}
	if said := count(events, journal.StateCorrupt); said != once || len(told) != once {
		return fmt.Errorf("said %d times that it is corrupt, mailed %d times", said, len(told))
	}
	if strings.Contains(name, "inbox") {
		got := 0
		for e, err := range transcript.Read(c.ctx, c.store.Log(), "alice", 0) {
			if err == nil {
				got += len(e.Mail)
			}
		}
		// A mail that lacks no more than its newline is whole.
		whole := bytes.Count(data, []byte("\n"))
		rest := data[bytes.LastIndexByte(data, '\n')+1:]
		if json.Valid(rest) {
			whole++
		} else if len(rest) > 0 && count(events, journal.MailRejected) != 1 {
			return fmt.Errorf("the torn mail was said to be rejected %d times", count(events, journal.MailRejected))
		}
		if got != whole+1 {
			return fmt.Errorf("%d mails were delivered, %d are whole", got, whole+1)
		}
	}
	return nil
}
