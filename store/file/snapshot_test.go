//go:build linux

package file

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// snapped is a repository with so many tasks, old enough to be in a snapshot, and what a listing of them must be.
func snapped(t testing.TB, n int) (root string, want map[string]string) {
	t.Helper()
	root, want = t.TempDir(), map[string]string{}
	for _, dir := range []string{".tasks", ".team"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o700))
	}
	for i := 1; i <= n; i++ {
		want[strconv.Itoa(i)] = fmt.Sprintf(`{"n":%d}`, i)
		write(t, root, i, want[strconv.Itoa(i)])
	}
	letStampsAge(t)
	return root, want
}

// listAnew is what a process that has just started sees of the tasks, and how many files it did not have to read.
func listAnew(t testing.TB, root string) (got map[string]string, spared int) {
	t.Helper()
	s := opened(t, root)
	s.snapshotFrom = 2
	got = map[string]string{}
	// The first look is made by another store that writes no snapshot, so that the one below still has the first look.
	before := opened(t, root)
	before.snapshotFrom = 1 << 30
	found, err := before.Table(muster.TableTasks).(*table).cache.look(t.Context(), 0)
	require.NoError(t, err)
	defer found.old.close()
	for _, d := range found.docs {
		if _, ok := found.old.content(d); ok && d.rev != muster.None {
			spared++
		}
	}
	tab := s.Table(muster.TableTasks)
	for c, err := range tab.Changes(t.Context(), 0) {
		require.NoError(t, err)
		if revOf(c.Data) != c.Rev {
			t.Fatalf("%s: %q is not what its revision says", c.Key, c.Data)
		}
		got[c.Key] = string(c.Data)
	}
	return got, spared
}

func snapshotFile(root string) string {
	return filepath.Join(root, ".team", "cache", "tasks.snapshot")
}

func wants(t testing.TB, root string, want map[string]string, least int) {
	t.Helper()
	got, spared := listAnew(t, root)
	if !maps.Equal(got, want) {
		t.Fatalf("%v is listed, not %v", got, want)
	}
	if spared != least {
		t.Fatalf("%d files were not read, not %d", spared, least)
	}
}

func TestSnapshotSparesFiles(t *testing.T) {
	root, want := snapped(t, 20)
	require.NoError(t, os.Remove(filepath.Join(root, ".team")))
	wants(t, root, want, 0)
	if _, err := os.Stat(filepath.Join(root, ".team")); err == nil {
		t.Error("a look at another program's board has made .team")
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, ".team"), 0o700))
	wants(t, root, want, 0)
	wants(t, root, want, 20)
	// One is written in place, one replaced with the same size and times, one goes, one comes.
	write(t, root, 3, `{"n":0}`)
	want["3"] = `{"n":0}`
	path := filepath.Join(root, ".tasks", "task_4.json")
	fi, err := os.Stat(path)
	require.NoError(t, err)
	write(t, root, 4, `{"n":9}`)
	require.NoError(t, os.Chtimes(path, fi.ModTime(), fi.ModTime()))
	want["4"] = `{"n":9}`
	require.NoError(t, os.Remove(filepath.Join(root, ".tasks", "task_5.json")))
	delete(want, "5")
	write(t, root, 21, `{"n":21}`)
	want["21"] = `{"n":21}`
	letStampsAge(t)
	wants(t, root, want, 17)
	if err := os.RemoveAll(filepath.Dir(snapshotFile(root))); err != nil { // safe to delete
		t.Fatal(err)
	}
	wants(t, root, want, 0)
}

// Of what is gone nothing is listed, and a snapshot that has little else is not kept: it would be looked through each
// time.
func TestSnapshotOfWhatIsGone(t *testing.T) {
	root, want := snapped(t, 40)
	wants(t, root, want, 0)
	remove := func(from, to int) {
		t.Helper()
		for i := from; i <= to; i++ {
			delete(want, strconv.Itoa(i))
			require.NoError(t, os.Remove(filepath.Join(root, ".tasks", fmt.Sprintf("task_%d.json", i))))
		}
	}
	remove(1, 20)
	wants(t, root, want, 20)
	size := func() int64 {
		fi, err := os.Stat(snapshotFile(root))
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	whole := size()
	remove(21, 35)
	wants(t, root, want, 5)
	if now := size(); now == 0 || now > whole/4 {
		t.Fatalf("it had %d bytes and has %d", whole, now)
	}
	wants(t, root, want, 5)
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".tasks")))
	if wants(t, root, map[string]string{}, 0); size() != 0 {
		t.Fatal("a snapshot of nothing is kept")
	}
}

// A snapshot that is torn, damaged or another table's changes nothing of what is seen.
func TestDamagedSnapshots(t *testing.T) {
	root, want := snapped(t, 12)
	wants(t, root, want, 0)
	good, err := os.ReadFile(snapshotFile(root))
	require.NoError(t, err)
	outer := t
	try := func(t rapid.TB, bad []byte) {
		require.NoError(t, os.WriteFile(snapshotFile(root), bad, 0o600))
		if got, _ := listAnew(outer, root); !maps.Equal(got, want) {
			t.Fatalf("with %d of %d bytes %v is listed", len(bad), len(good), got)
		}
	}
	for n := 0; n < len(good); n += tier.Amount(7, 1) {
		try(t, good[:n])
		flipped := append([]byte(nil), good...)
		flipped[n] ^= 0x55
		try(t, flipped)
	}
	rapid.Check(t, func(rt *rapid.T) {
		bad := append([]byte(nil), good...)
		for range rapid.IntRange(1, 4).Draw(rt, "holes") { // blocks that did not reach the disk
			from := rapid.IntRange(0, len(bad)-1).Draw(rt, "from")
			clear(bad[from:min(len(bad), from+rapid.IntRange(1, 300).Draw(rt, "size"))])
		}
		try(rt, bad)
	})
}

// One that a dead process was writing is removed; a living one's keeps others from it.
func TestOneWritesASnapshot(t *testing.T) {
	root, want := snapped(t, 20)
	dir := filepath.Dir(snapshotFile(root))
	require.NoError(t, os.Mkdir(dir, 0o700))
	temp := filepath.Join(dir, ".tasks.snapshot.tmp")
	require.NoError(t, os.WriteFile(temp, []byte("half"), 0o600))
	wants(t, root, want, 0)
	wants(t, root, want, 0)
	for _, age := range []time.Duration{time.Hour, -time.Hour} { // the clock may have been set back
		_ = os.Remove(snapshotFile(root))
		require.NoError(t, os.WriteFile(temp, []byte("half"), 0o600))
		require.NoError(t, os.Chtimes(temp, time.Time{}, time.Now().Add(-age)))
		wants(t, root, want, 0)
		wants(t, root, want, 20)
		if _, err := os.Stat(temp); err == nil {
			t.Error("what a dead process left is there")
		}
	}
}

// A snapshot whose checksum fits, but that muster did not write, is not believed: no start fails on it, and it leads no
// read out of the table.
func TestForgedSnapshots(t *testing.T) {
	root, want := snapped(t, 12)
	wants(t, root, want, 0)
	outside := filepath.Join(root, "outside.json")
	require.NoError(t, os.WriteFile(outside, []byte(`{}`), 0o600))
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64())
		key := rapid.SampledFrom([]string{"1", "3", "13", "meta", "", "../outside", "x"})
		var list []byte
		for range rapid.IntRange(1, 4).Draw(t, "entries") {
			k := key.Draw(t, "key")
			d := &docState{key: k, rev: revOf([]byte(k)),
				file: stamp{number.Draw(t, "size"), uint64(number.Draw(t, "inode")), number.Draw(t, "mtime"), 1}}
			entry := appendEntry(nil, d, nil)
			if rapid.Bool().Draw(t, "length") { // of the key, which comes first
				binary.LittleEndian.PutUint64(entry, uint64(number.Draw(t, "says")))
			}
			list = append(list, entry...)
		}
		list = list[:len(list)-rapid.IntRange(0, min(60, len(list))).Draw(t, "cut")]
		trailer := append(binary.LittleEndian.AppendUint64(nil, uint64(len(list))), revOf(list)...)
		whole := append(append([]byte(`{"n":1}`), list...), append(trailer, snapshotMark...)...)
		require.NoError(t, os.WriteFile(snapshotFile(root), whole, 0o600))
		if got, _ := listAnew(outer, root); !maps.Equal(got, want) {
			t.Fatalf("%v is listed", got)
		}
	})
}
