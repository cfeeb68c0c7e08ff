package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/journal"
	"muster/store/mem"
)

// TestOverlap checks which entries may name the same file, in both orders.
func TestOverlap(t *testing.T) {
	for pair, want := range map[string]bool{
		"a.go a.go": true, "a.go b.go": false, "a.go a.goo": false, "dir dir/a.go": true, "dir/ dir/a.go": true,
		"dir dirt/a.go": false, "*.go a.go": true, "*.go a.md": false, "dir/*.go dir/a.go": true,
		"dir/*.go other/a.go": false, "dir/*.go dir": true, "dir/*.go dir/sub": false, "** any/where": true,
		"dir/** dir/a/b/c": true, "dir/** other/a": false, "d* dir/a.go": true, "dir/*.go dir/*.md": true,
		"dir/*.go other/*.go": false, ". a.go": true, "./a.go a.go": true, "d* dir/*.go": true, "a?.go ab.go": true,
		"[ab].go a.go": true, "[ab].go c.go": false,
	} {
		x, y, _ := strings.Cut(pair, " ")
		if got, back := overlap([]string{x}, []string{y}), overlap([]string{"none", y}, []string{x}); got != want ||
			back != want {
			t.Errorf("%s: %v, and %v in the other order", pair, got, back)
		}
	}
	if overlap(nil, []string{"**"}) || overlap([]string{"a"}, nil) {
		t.Error("no files overlap with some")
	}
}

// TestFilesAreChecked checks that a task names files of the repository only, and not too many.
func TestFilesAreChecked(t *testing.T) {
	s := mem.New()
	b := New(s, journal.New(s.Log()))
	for _, f := range []string{"", "/etc/passwd", "..", "../x", "a/../../x", "a\nb", "[", "\xff",
		strings.Repeat("x", 257)} {
		_, err := b.Create(t.Context(), Draft{Subject: "x", Files: []string{f}, CreatedBy: muster.Lead})
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%q: %v", f, err)
		}
	}
	many := slices.Repeat([]string{"a", "b/*.go", "..c", strings.Repeat("x", 256)}, 13)
	_, err := b.Create(t.Context(), Draft{Subject: "x", Files: many[:51], CreatedBy: muster.Lead})
	if !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("51 files: %v", err)
	}
	made, err := b.Create(t.Context(), Draft{Subject: "x", Files: many[:50], CreatedBy: muster.Lead})
	if got, _ := b.Get(t.Context(), made.ID); err != nil || !slices.Equal(got.Files, many[:50]) {
		t.Errorf("%v, %v", got.Files, err)
	}
}

// TestOverlappingTasksComeLast drives a board at random. A task whose files somebody works on is handed out only when
// the member could claim no other; in the end every task was claimed.
func TestOverlappingTasksComeLast(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := mem.New()
		b := New(s, journal.New(s.Log()))
		ctx := context.Background()
		entries := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c/x", "c/y", "c", "c/*", "d*"}), 0, 2)
		n := rapid.IntRange(1, 12).Draw(r, "tasks")
		for i := range n {
			d := Draft{Subject: fmt.Sprint(i), Files: entries.Draw(r, "files"), CreatedBy: muster.Lead,
				Priority: rapid.IntRange(0, 2).Draw(r, "priority"),
				Role:     rapid.SampledFrom([]string{"", "", "x"}).Draw(r, "role")}
			if _, err := b.Create(ctx, d); err != nil {
				r.Fatal(err)
			}
		}
		var held []muster.Task
		for claimed := 0; claimed < n; {
			role := rapid.SampledFrom([]string{"x", "x", "y"}).Draw(r, "claims")
			if len(held) > 0 && rapid.Bool().Draw(r, "completes") {
				if _, err := b.Complete(ctx, held[0].ID, held[0].Fence, Outcome{}); err != nil {
					r.Fatal(err)
				}
				held = held[1:]
			}
			var busy []string
			for _, h := range held {
				busy = append(busy, h.Files...)
			}
			all, err := b.List(ctx)
			if err != nil {
				r.Fatal(err)
			}
			onlyOwn := rapid.Bool().Draw(r, "only own")
			mayClaim := slices.DeleteFunc(all, func(x muster.Task) bool {
				return !x.Claimable(role) || onlyOwn && x.ClaimRole == ""
			})
			got, ok, err := b.ClaimNext(ctx, Claim{Owner: "alice", Role: role, OnlyOwn: onlyOwn})
			if err != nil || ok != (len(mayClaim) > 0) {
				r.Fatalf("%d tasks can be claimed, and %v, %v", len(mayClaim), ok, err)
			}
			if !ok {
				continue
			}
			other := func(x muster.Task) bool { return !overlap(x.Files, busy) }
			if overlap(got.Files, busy) && slices.ContainsFunc(mayClaim, other) {
				r.Fatalf("task %d (%v) was handed out while somebody works on %v", got.ID, got.Files, busy)
			}
			if rapid.Bool().Draw(r, "lands") {
				_, err = b.BeginLanding(ctx, got.ID, got.Fence, muster.PendingLanding{Head: "h"})
			}
			if held = append(held, got); err != nil {
				r.Fatal(err)
			}
			claimed++
		}
	})
}

// TestOverlapAtOnce checks that two members of one process that claim at the same moment get tasks that do not overlap.
func TestOverlapAtOnce(t *testing.T) {
	for range 50 {
		s := mem.New()
		b := New(s, journal.New(s.Log()))
		for _, f := range []string{"a", "a", "b", "b"} {
			if _, err := b.Create(t.Context(), Draft{Subject: f, Files: []string{f}, CreatedBy: muster.Lead}); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		got := make([]muster.Task, 2)
		for i := range got {
			both.Go(func() { got[i], _, _ = b.ClaimNext(t.Context(), Claim{Owner: "alice"}) })
		}
		both.Wait()
		if overlap(got[0].Files, got[1].Files) {
			t.Fatalf("tasks %d and %d were claimed at once", got[0].ID, got[1].ID)
		}
	}
}
