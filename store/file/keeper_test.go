package file_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
	"muster/store/file"
)

// keeping is a state in which processes host members, and other programs change the file of task 1.
type keeping struct {
	*testing.T
	disk durable.FS
	root string
	told []string
}

// newKeeping has a disk on which all states of a write can be made, but no lock is seen by the processes of others.
func newKeeping(t *testing.T) *keeping { return &keeping{T: t, disk: newDisk(), root: simRoot} }

func (k *keeping) task() string { return k.root + "/.tasks/task_1.json" }

// process is one more process. ask is asked before its writes.
func (k *keeping) process(ask func(simfs.Kind, string) error) *file.Store {
	k.Helper()
	s, err := file.OpenOn(durable.New(simfs.Tap{FS: k.disk, Ask: ask}), k.root)
	require.NoError(k, err)
	s.OnOverwrite(func(table, file string, found muster.Doc) {
		k.told = append(k.told, fmt.Sprintf("%s %s %s %s", table, found.Key, file, found.Data))
	})
	k.Cleanup(func() { s.Close() })
	return s
}

func allowed(simfs.Kind, string) error { return nil }

// host is one more process that hosts members and has looked at its tasks.
func (k *keeping) host(n int) *file.Store {
	k.Helper()
	s := k.process(allowed)
	require.NoError(k, did(s.Leases().Acquire(k.Context(), fmt.Sprint(muster.HostLeases, n))))
	k.is(s, k.is(nil, ""))
	return s
}

// put has a process of muster write the task; "" deletes it.
func (k *keeping) put(s *file.Store, data string) error {
	k.Helper()
	tasks := s.Table(muster.TableTasks)
	doc, err := tasks.Get(k.Context(), "1")
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	if data == "" {
		return tasks.Delete(k.Context(), "1", doc.Rev)
	}
	return did(tasks.Put(k.Context(), "1", []byte(data), doc.Rev))
}

// edit has another program write the file, or remove it.
func (k *keeping) edit(data string) {
	k.Helper()
	if data == "" {
		require.NoError(k, k.disk.Remove(k.task()))
		return
	}
	if err := k.disk.Mkdir(k.root+"/.tasks", 0o700); !errors.Is(err, syscall.EEXIST) {
		require.NoError(k, err)
	}
	require.NoError(k, durable.New(k.disk).Overwrite(k.task(), []byte(data)))
}

// is checks what a process has of the task, if it is not nil, and returns what the file has.
func (k *keeping) is(s *file.Store, want string) string {
	k.Helper()
	if s != nil {
		got := ""
		for c, err := range s.Table(muster.TableTasks).Changes(k.Context(), 0) {
			require.NoError(k, err)
			got += string(c.Data)
		}
		if got != want {
			k.Errorf("the task is %s; want %s", got, want)
		}
	}
	data, _, err := durable.New(k.disk).ReadFile(k.task())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.Fatal(err)
	}
	if s != nil && string(data) != want {
		k.Errorf("the file has %s; want %s", data, want)
	}
	return string(data)
}

// What another program makes of a document is undone and reported once, whichever process finds it. That holds for what
// was there when the team started, and for the last version of each process, also if it has gone.
func TestForeignChangesAreUndone(t *testing.T) {
	for _, foreign := range []string{`{"n":9}`, "", `{"n":`, `{"n":0}`} {
		for _, isChanged := range []bool{false, true} {
			k := newKeeping(t)
			k.edit(`{"n":0.5}`) // no team is at work
			require.NoError(t, k.put(k.process(allowed), `{"n":1}`))
			a, b := k.host(1), k.host(2)
			want := `{"n":1}`
			if isChanged {
				require.NoError(t, k.put(a, `{"n":0}`))
				want = `{"n":2}`
				require.NoError(t, k.put(k.process(allowed), want)) // nobody has read this
			}
			k.edit(foreign)
			k.is(b, want)
			k.is(a, want)
			if !slices.Equal(k.told, []string{"tasks 1 .tasks/task_1.json " + foreign}) {
				t.Errorf("reported were %q", k.told)
			}
			require.NoError(t, k.put(b, `{"n":3}`))
			k.is(a, `{"n":3}`)
		}
	}
}

// Other processes of muster are no other programs, also those that host nobody or are killed at any point of a write.
func TestProcessesOfMusterAreBelieved(t *testing.T) {
	k := newKeeping(t)
	host := k.host(1)
	for i, kind := range []simfs.Kind{simfs.Create, simfs.Write, simfs.Sync, simfs.Rename, simfs.SyncDir, simfs.Remove} {
		for _, where := range []string{"/.tasks", paths.Dir(simRoot).Kept()} {
			for _, data := range []string{fmt.Sprintf(`{"n":%d}`, i), ""} {
				isDead := false
				dying := k.process(func(now simfs.Kind, name string) error {
					if isDead = isDead || now == kind && strings.Contains(name, where); isDead {
						return simfs.Short{Err: syscall.ENOSPC}
					}
					return nil
				})
				_ = k.put(dying, data)
				k.is(host, k.is(nil, ""))
				require.NoError(t, k.put(host, `{"n":10}`))
				require.NoError(t, k.put(k.process(allowed), data))
				k.is(host, data)
			}
		}
	}
	if len(k.told) > 0 {
		t.Errorf("reported were %q", k.told)
	}
}

// The first version that a host reads is muster's, whichever host it is; and so is what a process has written that was
// killed before it could say so.
func TestOneVersionCounts(t *testing.T) {
	k := &keeping{T: t, disk: durable.OS{}, root: t.TempDir()}
	k.edit(`{"n":1}`)
	a := k.host(1)
	k.edit(`{"n":2}`)
	b := k.process(allowed)
	require.NoError(t, did(b.Leases().Acquire(t.Context(), "host-2")))
	k.is(b, `{"n":1}`)
	k.is(a, `{"n":1}`)
	isDead := false
	_ = k.put(k.process(func(kind simfs.Kind, name string) error {
		if isDead = isDead || kind == simfs.Rename && strings.Contains(name, paths.Dir(k.root).Kept()); isDead {
			return syscall.EIO
		}
		return nil
	}), `{"n":3}`)
	k.is(a, `{"n":3}`)
	k.edit(`{"n":4}`)
	k.is(b, `{"n":3}`)
	require.NoError(t, k.put(a, ""))
	k.edit(`{"n":5}`) // it comes again, and is kept from then on
	k.is(b, `{"n":5}`)
	k.edit(`{"n":6}`)
	k.is(a, `{"n":5}`)
	if len(k.told) != 3 {
		t.Errorf("reported were %q", k.told)
	}
}

// A new document is taken in, also where muster has deleted one, and one that is mended. Without a team all changes are.
func TestWhatIsTakenIn(t *testing.T) {
	k := newKeeping(t)
	host := k.host(1)
	k.edit(`{"n":`)
	if _, err := host.Table(muster.TableTasks).Get(t.Context(), "1"); !errors.Is(err, muster.ErrCorrupt) {
		t.Errorf("half of it is %v", err)
	}
	k.edit(`{"n":1}`)
	k.is(host, `{"n":1}`)
	require.NoError(t, k.put(host, ""))
	k.edit(`{"n":2}`)
	k.is(host, `{"n":2}`)
	host.Close()
	other := k.process(allowed)
	lease, err := other.Leases().Acquire(t.Context(), "host-1")
	require.NoError(t, errors.Join(err, k.put(other, `{"n":3}`), lease.Release()))
	for _, n := range []string{"4", "5"} { // the second one after other has read the first
		k.edit(`{"n":` + n + `}`)
		k.is(other, `{"n":`+n+`}`)
	}
	require.NoError(t, did(other.Leases().Acquire(t.Context(), "host-1")))
	k.edit(`{"n":6}`)
	k.is(other, `{"n":6}`) // it came before the first look
	if len(k.told) > 0 {
		t.Errorf("reported were %q", k.told)
	}
}

// A file that cannot be replaced is corrupt, as it is where nobody keeps the documents.
func TestAFileThatCannotBePutBack(t *testing.T) {
	s, root := one(t)
	tasks := s.Table(muster.TableTasks)
	require.NoError(t, did(tasks.Put(t.Context(), "1", []byte(`{}`), muster.None)))
	require.NoError(t, did(s.Leases().Acquire(t.Context(), "host-1")))
	require.NoError(t, did(tasks.Get(t.Context(), "1")))
	path := root + "/.tasks/task_1.json"
	require.NoError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	if _, err := tasks.Get(t.Context(), "1"); !errors.Is(err, muster.ErrCorrupt) {
		t.Errorf("the error is %v", err)
	}
}
