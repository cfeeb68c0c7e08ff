package roster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
	"muster/store/storetest"
)

// A failure of the store is the caller's error, whatever operation it comes in. A damaged slot is kept before it is
// replaced, a late process writes no old config.json, and what is recorded has its event although the caller has ended.
func TestNoFailureIsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := map[string]func(){} // what happens once, before an operation
		isTable := func(op string) bool {
			if f := before[op]; f != nil {
				delete(before, op)
				f()
			}
			return !strings.HasSuffix(op, " events") && !strings.HasSuffix(op, " mail")
		}
		storetest.FailEach(t, isTable, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
			s := mem.New()
			other, r, late := process(s), process(wrap(s)), process(wrap(s))
			h := join(t, other)
			require.NoError(t, h.Release())
			add(t, other, muster.Member{Name: "alice", Role: "coder", Host: h.ID()})
			write(t, s, `{"members":[{"name":"zed"},{"name":"alice"}]}`)
			_, err := s.Table(muster.TableHosts).Put(t.Context(), "host-2", []byte(`7`), muster.None)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, do := range []func() error{
				func() error { _, err := r.EndTools(ctx); return err },
				func() error { h, err = r.Join(ctx, "x"); return err },
				func() error { return h.SetEnded(ctx) },
				func() error { _, err := r.Alive(ctx, h.ID()); return err },
				func() error { _, err := r.Hosts(ctx); return err },
				func() error {
					_, err := r.Join(ctx, "y")
					kept := 0
					for _, err := range other.kept.Changes(ctx, 0) {
						require.NoError(t, err)
						kept++
					}
					if doc, _ := other.hostTable.Get(ctx, "host-2"); string(doc.Data) != "7" && kept == 0 {
						t.Errorf("the damaged slot is lost: %v", err)
					}
					return err
				},
				func() error { _, err := r.Add(ctx, muster.Member{Name: "bob"}); return err },
				func() error { _, err := r.Add(ctx, muster.Member{Name: "alice"}); return err },
				func() error { _, err := r.TakeOver(ctx, "alice", "", h.ID()); return err },
				func() error { _, err := r.Get(ctx, "alice"); return err },
				func() error { _, err := r.List(ctx); return err },
				func() error { _, err := r.Teammates(ctx); return err },
				func() error { _, err := ListIf(ctx, r, func(*muster.Member) bool { return true }); return err },
				func() error { _, _, err := r.Known(ctx, "alcie"); return err },
				func() error { return r.Project(ctx) },
				func() error {
					before["get team/config"] = func() {
						set(t, other, "bob", muster.Shutdown, muster.IdleTimeout)
						require.NoError(t, other.Project(ctx))
					}
					return late.Project(ctx)
				},
				func() error {
					before["append events"] = cancel
					_, err := r.Update(ctx, "bob", func(m *muster.Member) { m.Status = muster.Idle })
					return err
				},
			} {
				if err := do(); err != nil {
					if held, _ := other.leases.Held(ctx, "host-1"); held && h == nil {
						t.Error("a process that could not join keeps its slot")
					}
					return err
				}
			}
			file, told := config(t, s), kinds(t, s)
			if told[len(told)-1] != "member.idle bob timeout" || !strings.Contains(file, `"shutdown"`) {
				t.Errorf("the events are %q, and the file is %s", told, file)
			}
			return nil
		})
	})
}
