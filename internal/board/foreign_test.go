package board

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"muster"
	"muster/journal"
)

// What programs written after the seeds' tutorials leave on disk.

func TestForeignFiles(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.write("1", `{"id": 1, "subject": "设计", "description": "", "status": "pending", "owner": null, "blockedBy": [], "blocks": [7], "theirs": {"keep": "me <b>"}}`)
		w.write("2", `{"id": 2, "subject": "实现登录接口", "status": "pending", "blockedBy": [1], "required_role": "coder"}`)
		w.write("3", `{"id": 3, "subject": "c", "status": "in_progress", "owner": "zoe", "claimed_at": 1714567890.123, "claim_source": "auto"}`)
		w.write("4", `{"id": 4, "subject": "d", "status": "in_progress", "worktree": "auth-refactor"}`)
		w.write("5", `{"id": 5, "subject": "e", "status": "pending", "owner": "zoe", "blocked_by": [1, 3]}`)
		w.write("6", `{"id": 6, "subject": "f", "status": "pending", "blockedBy": [1]}`)
		b := w.board()
		all, err := b.List(w.ctx)
		if must(w, all, err); len(all) != 6 || !slices.Equal(all[0].Blocks, []muster.TaskID{2, 5, 6}) || !slices.Equal(all[4].BlockedBy, []muster.TaskID{1, 3}) {
			t.Fatalf("%+v", all)
		}
		must(w, 0, b.Settle(w.ctx))
		if got := w.get(b, 1); got.Blocks != nil {
			t.Errorf("the blocks that are stored are believed: %v", got.Blocks)
		}
		if got := w.raw("1"); got["theirs"] == nil {
			t.Errorf("%v", got)
		}
		for _, key := range []string{"1", "3", "4"} {
			if _, rewritten := w.raw(key)["fence"]; rewritten {
				t.Errorf("%s needed no repair and was written: %v", key, w.raw(key))
			}
		}

		w.refused(errOf(b.Claim(w.ctx, 2, Claim{Owner: "alice", Role: "coder"})), muster.Invalid, "task 2 waits for 1 (pending)")
		w.refused(errOf(b.Claim(w.ctx, 4, Claim{Owner: "alice"})), muster.Invalid, "task 4 is in progress, though nobody owns it")
		w.refused(errOf(b.Claim(w.ctx, 5, Claim{Owner: "alice"})), muster.Held, "task 5 is zoe's")
		w.refused(errOf(b.Claim(w.ctx, 6, Claim{Owner: "alice"})), muster.Invalid, "task 6 waits for 1 (pending)")

		c := w.take(b, 1, "alice")
		if c.Fence != 1 || string(c.Extra["theirs"]) == "" {
			t.Errorf("%+v", c)
		}
		must(w, c, errOf(b.Complete(w.ctx, 1, 1, Outcome{})))
		if got := w.raw("2"); len(got["blockedBy"].([]any)) != 0 || got["claim_role"] != "coder" {
			t.Errorf("%v", got)
		}
		must(w, c, errOf(b.Claim(w.ctx, 2, Claim{Owner: "alice", Role: "coder"})))
		must(w, c, errOf(b.CompleteByHand(w.ctx, 3, "zoe", "theirs")))
		for _, id := range []muster.TaskID{4, 5} {
			r, err := b.Revoke(w.ctx, id, 0, muster.User, "nobody works on it")
			if must(w, r, err).Status != muster.Pending || r.Owner != "" {
				t.Errorf("%+v", r)
			}
			w.take(b, id, "bob")
		}
		must(w, 0, b.Settle(w.ctx))
		w.whole()
	})
}

func TestCorruptTaskHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b, other := w.board(), w.board()
		w.add(b, "1")
		w.add(b, "2", 1)
		w.write("3", `{"id": 3, "subject": ["no", "text"]}`)
		w.write("4", "{\"id\": 4,\n\"subject\": \"\xff\"}")
		w.write("10", `[1]`)
		w.write("6", `{"id": 6, "subject": "waits for one of them", "blockedBy": [3]}`)
		for _, p := range []*Board{b, other, b, other} {
			all, err := p.List(w.ctx)
			if must(w, all, err); len(all) != 3 || all[2].ID != 6 {
				t.Fatalf("%+v", all)
			}
			must(w, 0, p.Settle(w.ctx))
		}
		bad := b.Corrupt()
		if len(bad) != 3 || bad[0].ID != 3 || bad[1].Why != "task 4 cannot be read: line 2 is not UTF-8" || bad[2].ID != 10 {
			t.Errorf("%+v", bad)
		}
		if e := w.events(journal.StateCorrupt); len(e) != 3 || e[1].Task != 3 || e[1].Text("text") == "" {
			t.Errorf("said %d times: %+v", len(e), e)
		}
		w.refused(errOf(b.Claim(w.ctx, 6, Claim{Owner: "alice"})), muster.Invalid, "task 6 waits for 3, which cannot be read")
		_, err := b.Claim(w.ctx, 3, Claim{Owner: "alice"})
		if !errors.Is(err, muster.ErrCorrupt) {
			t.Errorf("got %v", err)
		}
		next, err := UnusedID(w.ctx, b)
		if got := w.add(b, "new"); err != nil || next != 11 || got.ID != 11 {
			t.Errorf("the id of an unreadable task was given to %+v", got)
		}
		w.write("3", `{"id": 3, "subject": "mended", "status": "completed"}`)
		must(w, 0, b.Settle(w.ctx))
		w.take(b, 6, "alice")
		if bad := b.Corrupt(); len(bad) != 2 {
			t.Errorf("%+v", bad)
		}
	})
}

// When another program removes the file of an unfinished task, the next Settle drops the edges to it.
func TestAForeignProgramRemovesABlocker(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "1")
	w.add(b, "2", 1)
	must(w, 0, b.Settle(w.ctx))
	table := w.store.Table(muster.TableTasks)
	doc, err := table.Get(w.ctx, "1")
	must(w, 0, errors.Join(err, table.Delete(w.ctx, "1", doc.Rev)))
	must(w, 0, b.Settle(w.ctx))
	if got := w.get(b, 2); len(got.DependsOn) != 0 || len(got.BlockedBy) != 0 {
		t.Fatalf("it still waits: %+v", got)
	}
	w.take(b, 2, "alice")
}
