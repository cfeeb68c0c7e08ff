package ports_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/internal/ports"
	"muster/internal/testing/require"
)

// mkdir makes a directory that can have ports.
func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

func assign(t *testing.T, table *ports.Table, dir string, n int, had ...int) []int {
	t.Helper()
	got := require.Value(table.Assign(t.Context(), dir, n, had))(t)
	if len(got) != n {
		t.Fatalf("%s has %v, not %d ports", dir, got, n)
	}
	return got
}

// Many that ask at once, each with a value of its own as processes have, never share a port, and each has the same when
// it asks again.
func TestPortsAreOfOneDirectoryOnly(t *testing.T) {
	root := t.TempDir()
	var all sync.Map
	var group sync.WaitGroup
	for i := range 24 {
		dir := mkdir(t, root, fmt.Sprint(i))
		group.Go(func() {
			table := ports.Open(root)
			got, err := table.Assign(t.Context(), dir, 1+i%4, nil)
			if err != nil || len(got) != 1+i%4 {
				t.Errorf("%v, %v", got, err)
				return
			}
			for _, port := range got {
				if other, taken := all.LoadOrStore(port, dir); taken {
					t.Errorf("%d is of %s and %s", port, other, dir)
				}
				if port < ports.Lowest || port > ports.Highest {
					t.Errorf("%d is none that may be given out", port)
				}
			}
			if again, err := ports.Open(root).Assign(t.Context(), dir, 1+i%4, nil); err != nil || !slices.Equal(again, got) {
				t.Errorf("%v and then %v, %v", got, again, err)
			}
		})
	}
	group.Wait()
}

// What a directory had comes back when it is released or gone, and not before.
func TestPortsOfGoneDirectoriesAreFree(t *testing.T) {
	root := t.TempDir()
	table := ports.Open(root)
	const most = (ports.Highest - ports.Lowest + 1) / ports.Most
	ports.SetFree(table, func(port int) bool { return true })
	for i := range most {
		assign(t, table, mkdir(t, root, "d", fmt.Sprint(i)), ports.Most)
	}
	if got, err := table.Assign(t.Context(), mkdir(t, root, "more"), ports.Most, nil); err == nil {
		t.Fatalf("all are given out, and one more has %v", got)
	}
	was := assign(t, table, filepath.Join(root, "d", "7"), ports.Most)
	require.NoError(t, os.Remove(filepath.Join(root, "d", "7")))
	if got := assign(t, table, filepath.Join(root, "more"), ports.Most); !slices.Equal(got, was) {
		t.Errorf("got %v and not those of the directory that is gone, %v", got, was)
	}
	require.NoError(t, table.Release(t.Context(), filepath.Join(root, "more")))
	if got := assign(t, table, mkdir(t, root, "last"), ports.Most); !slices.Equal(got, was) {
		t.Errorf("got %v and not those that were released, %v", got, was)
	}
}

// A port on which somebody listens is not given out, whichever address that is.
func TestPortsInUseAreAvoided(t *testing.T) {
	root := t.TempDir()
	dir := mkdir(t, root, "lane")
	table := ports.Open(filepath.Join(root, "a"))
	first := assign(t, table, dir, 3)
	for _, host := range []string{"127.0.0.1", "0.0.0.0"} {
		l := require.Value(net.Listen("tcp4", fmt.Sprintf("%s:%d", host, first[1])))(t)
		// A new table would choose the same, because the directory is the same.
		if got := assign(t, ports.Open(filepath.Join(root, "b"+host)), dir, 3); slices.Contains(got, first[1]) {
			t.Errorf("%v has a port on which somebody listens at %s", got, host)
		}
		// Who has it keeps it: the listener is most likely its own.
		if got := assign(t, table, dir, 3); !slices.Equal(got, first) {
			t.Errorf("%v has become %v", first, got)
		}
		l.Close()
	}
}

// A lost or damaged table is no reason for other ports: the lane says what it had.
func TestLostTable(t *testing.T) {
	root := t.TempDir()
	dir, other := mkdir(t, root, "lane"), mkdir(t, root, "other")
	had := []int{20100, 20101, 20102}
	for _, text := range []string{"", "{", "null", `{"owners":7}`} {
		path := filepath.Join(root, "ports.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if got := assign(t, ports.Open(root), dir, 3, had...); !slices.Equal(got, had) {
			t.Errorf("after %q the ports are %v", text, got)
		}
		if got := assign(t, ports.Open(root), other, 3, had...); slices.Contains(got, had[0]) {
			t.Errorf("after %q two have %v", text, got)
		}
	}
	// What a record claims that no table would give is not believed.
	if got := assign(t, ports.Open(t.TempDir()), dir, 2, 22, 23); got[0] < ports.Lowest {
		t.Errorf("got %v", got)
	}
}

func TestEnviron(t *testing.T) {
	for _, c := range []struct {
		ports []int
		env   string
		want  string
	}{
		{nil, "", ""},
		{[]int{20001}, "A=b", "MUSTER_PORT_1=20001 PORT=20001"},
		{[]int{20001, 20002}, "PORTS=1", "MUSTER_PORT_1=20001 MUSTER_PORT_2=20002 PORT=20001"},
		{[]int{20001}, "PORT=80", "MUSTER_PORT_1=20001"},
	} {
		if got := strings.Join(ports.Environ(c.ports, []string{c.env}), " "); got != c.want {
			t.Errorf("%v beside %q is %q, not %q", c.ports, c.env, got, c.want)
		}
	}
}
