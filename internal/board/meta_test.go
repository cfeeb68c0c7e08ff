package board

import (
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/journal"
	"muster/store/storetest"
)

// A meta document that cannot be made anew is the error of who needs it. It is made anew by the next one.
func TestNoFailureIsHiddenWhileMetaIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isCounted := func(op string) bool { return op != "get tasks/meta" } // which is read again whatever comes
		storetest.FailEach(t, isCounted, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
			w := inMemory(t)
			w.write("41", `{"id": 41, "subject": "of another program", "status": "pending"}`)
			w.write("meta", `{"next_id": 1000000000001}`)
			faulty := wrap(w.open())
			b := New(faulty, journal.New(faulty.Log()))
			_, err := b.meta.read(w.ctx)
			if got := w.add(w.board(), "next"); got.ID != 42 || w.raw("meta")["next_id"] != 42.0 {
				t.Errorf("after %v the next task is %d, and meta says %v", err, got.ID, w.raw("meta"))
			}
			return err
		})
	})
}

// An event that cannot be read keeps the next id from nobody.
func TestMetaIsMadeAnewBesideABadEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		b := w.board()
		w.add(b, "1")
		w.add(b, "2")
		must(w, 0, errOf(w.store.Log().Append(w.ctx, muster.StreamEvents, muster.Anywhere, []byte(`{"kind": 7}`))))
		must(w, 0, b.Delete(w.ctx, 2, false)) // only the events know of it then
		w.write("meta", `[]`)
		if got := w.add(w.board(), "3"); got.ID != 3 {
			t.Errorf("%+v", got)
		}
		w.write("meta", `{"next_id": 9, "edges": "many"}`) // what can be read of it counts
		if got := w.add(w.board(), "9"); got.ID != 9 || w.raw("meta")["edges"] != float64(time.Now().UnixMilli()) {
			t.Errorf("%+v, %v", got, w.raw("meta"))
		}
	})
}
