package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
)

// rotating opens a store that rotates early.
func rotating(t testing.TB, root string, at int64) *Store {
	s := opened(t, root)
	s.rotateAt = at
	return s
}

func line(n int) []byte {
	return fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat("x", n%37))
}

// files are a journal's rotated files, oldest first.
func files(t testing.TB, s *Store) []logSegment {
	t.Helper()
	l := logs{s}
	all, err := l.openLog(filepath.Join(s.dir.Team(), "events.jsonl"), 0)
	require.NoError(t, err)
	closeSegments(all)
	old := all[:len(all)-1]
	for i := range old {
		old[i].file = nil // so that two lists can be compared
	}
	return old
}

// after is what a stream has after a place.
func after(t testing.TB, s *Store, at muster.Pos) (data []string, places []muster.Pos) {
	t.Helper()
	for r, err := range s.Log().Read(t.Context(), muster.StreamEvents, at) {
		if err != nil {
			t.Fatalf("after %d: %v", at, err)
		}
		data, places = append(data, string(r.Data)), append(places, r.Pos)
	}
	return data, places
}

// A place that was stored at any moment leads on, however often the file was rotated since, and the tail is found.
func TestPlacesStayAcrossRotations(t *testing.T) {
	root := t.TempDir()
	a, b := rotating(t, root, 300), rotating(t, root, 300)
	var all []string
	places := []muster.Pos{0}
	for n := range 100 {
		end, err := []*Store{a, b}[n%2].Log().Append(t.Context(), muster.StreamEvents, places[n], line(n))
		require.NoError(t, err)
		all, places = append(all, string(line(n))), append(places, end)
	}
	require.NoError(t, os.WriteFile(filepath.Join(a.dir.Team(), "99999.jsonl"), nil, 0o600)) // is none of them
	old := files(t, a)
	if len(old) < 10 {
		t.Fatalf("it was rotated %d times", len(old))
	}
	late, err := os.ReadFile(old[3].path) // a program without our lock adds to what was rotated
	require.NoError(t, errors.Join(err, os.WriteFile(old[3].path, append(late, "{}\n"...), 0o600)))
	for n, at := range places {
		got, ends := after(t, b, at)
		if !slices.Equal(got, all[n:]) || !slices.Equal(ends, places[n+1:]) {
			t.Fatalf("after %d: %q at %v", at, got, ends)
		}
		if from, err := a.Log().Tail(t.Context(), muster.StreamEvents, 100-n); err != nil || from != at {
			t.Fatalf("the last %d begin at %d, not %d: %v", 100-n, from, at, err)
		}
		for _, err := range b.Log().Read(t.Context(), muster.StreamEvents, at+1) {
			if !errors.Is(err, muster.ErrTrimmed) {
				t.Fatalf("%d is in the middle of a line: %v", at+1, err)
			}
		}
	}
	require.NoError(t, os.Remove(old[5].path)) // the stream begins after the gap
	if got, _ := after(t, b, 0); !slices.Equal(got, all[slices.Index(places, muster.Pos(old[5].to)):]) {
		t.Errorf("after a gap there is %q", got)
	}
}

// A file that is rotated between the list and the open is read once and in its place.
func TestARotationUnderAReader(t *testing.T) {
	root := t.TempDir()
	writer := rotating(t, root, 1)
	add := func() {
		require.NoError(t, did(writer.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, line(1))))
	}
	add()
	s, err := OpenOn(durable.New(&atStat{path: filepath.Join(root, ".team", "events.jsonl"), act: add}), root)
	require.NoError(t, err)
	defer s.Close()
	got, places := after(t, s, 0)
	if _, want := after(t, s, 0); len(got) != 2 || !slices.Equal(places, want) {
		t.Errorf("%q at %v, not %v", got, places, want)
	}
}

// What is trimmed is said to be gone; what comes after it, and the places, stay.
func TestTrimRemovesRotatedFiles(t *testing.T) {
	s := rotating(t, t.TempDir(), 300)
	for n := range 60 {
		require.NoError(t, did(s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, line(n))))
	}
	all, places := after(t, s, 0)
	old := files(t, s)
	for _, f := range old {
		require.NoError(t, s.Log().Trim(t.Context(), muster.StreamEvents, muster.Pos(f.to)))
		first := files(t, s)[0]
		if last := old[len(old)-1]; first.from != f.to && first != last {
			t.Fatalf("after a trim at %d it begins at %d", f.to, first.from)
		}
		for i, at := range places {
			if int64(at) >= first.from {
				if got, _ := after(t, s, at); !slices.Equal(got, all[i+1:]) {
					t.Fatalf("after %d: %q", at, got)
				}
				continue
			}
			for _, err := range s.Log().Read(t.Context(), muster.StreamEvents, at) {
				if !errors.Is(err, muster.ErrTrimmed) {
					t.Fatalf("%d is trimmed: %v", at, err)
				}
			}
		}
		gone := 0
		for gone < len(places) && int64(places[gone]) <= first.from {
			gone++
		}
		if got, ends := after(t, s, 0); !slices.Equal(got, all[gone:]) || !slices.Equal(ends, places[gone:]) {
			t.Fatalf("from the beginning, which is now %d: %q at %v", first.from, got, ends)
		}
	}
	end, err := s.Log().Append(t.Context(), muster.StreamEvents, places[len(places)-1], line(1))
	if got, _ := after(t, s, places[len(places)-1]); err != nil || end <= places[len(places)-1] || len(got) != 1 {
		t.Fatal(end, got, err)
	}
}

// A stream that goes on and on takes a bounded room: the oldest files go when another one is rotated.
func TestStreamsAreBounded(t *testing.T) {
	for stream, rotated := range map[string]string{
		muster.StreamEvents: ".team/events.", muster.StreamTranscripts + "alice": ".transcripts/alice/log.",
		muster.StreamClaims: ".tasks/claim_events.", muster.StreamLanes: ".worktrees/events.",
	} {
		s := rotating(t, t.TempDir(), 200)
		s.keepRotated = 1000
		for n := range 300 {
			end, err := s.Log().Append(t.Context(), stream, muster.Anywhere, line(n))
			require.NoError(t, err)
			if at, err := s.Log().Tail(t.Context(), stream, 0); err != nil || at != end {
				t.Fatalf("%s ends at %d, not at %d: %v", stream, at, end, err)
			}
		}
		var want, got []string // what the files hold is the end of the stream
		for r, err := range s.Log().Read(t.Context(), stream, 0) {
			require.NoError(t, err)
			got = append(got, string(r.Data))
		}
		for n := range got {
			want = append(want, string(line(300-len(got)+n)))
		}
		files, err := filepath.Glob(filepath.Join(string(s.dir), rotated+"*"))
		if err != nil || !slices.Equal(got, want) || len(got) < 1 || len(got) > 60 || len(files) < 2 || len(files) > 8 {
			t.Errorf("of %s there are %v with %q, %v", stream, files, got, err)
		}
	}
}
