// Package ports gives directories in which commands run network ports of their own: lanes, and the slots of checks.
//
// A Table is one file for all repositories of a user. It says which ports belong to which directory, so that two lanes
// never have the same, whatever team, process or repository they belong to. Its invariants:
//
//   - It changes under its lock only, and is replaced as a whole.
//   - Ports belong to a directory until they are released or the directory is gone. Asking again gives the same ones.
//   - No new port is one that somebody listens on at that moment, or that the system gives to outgoing connections.
//
// Nothing keeps a program that ignores PORT from taking any port: a table only keeps apart those that use their own.
package ports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"muster"
	"muster/internal/durable"
)

// The ports that are given out: below those that Linux (32768) and macOS (49152) use for outgoing connections, and
// without those of programs that many people run.
const (
	lowest  = 20000
	highest = 26999
)

// Most is how many ports one directory has at most.
const Most = 20

// Table says which ports belong to which directory. It is safe for concurrent use, in several processes too.
type Table struct {
	files      *durable.Files
	path, lock string
	isFree     func(port int) bool
}

// Open returns the table that lies in a directory; nil where dir is "". It writes nothing.
func Open(dir string) *Table {
	if dir == "" {
		return nil
	}
	return &Table{files: durable.New(durable.OS{}), path: filepath.Join(dir, "ports.json"),
		lock: filepath.Join(dir, "ports.lock"), isFree: isFree}
}

// content is the file. A program that does not know a field would lose it, so there are few.
type content struct {
	Owners map[string]block `json:"owners"` // by directory
}

// block is a row of ports, one after the other. Count may be 0: the directory is known, and has none.
type block struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// ports returns the ports of a block.
func (b block) ports() []int {
	var all []int
	for i := range b.Count {
		all = append(all, b.First+i)
	}
	return all
}

// overlaps reports whether two blocks share a port.
func (b block) overlaps(o block) bool { return b.First < o.First+o.Count && o.First < b.First+b.Count }

// Assign returns n ports (at most Most) for a directory: those that it has, or new ones where it has none or fewer.
// had is what it had by another record, in case the table was lost. Errors: Unavailable (the table cannot be used, or
// all ports are given out).
func (t *Table) Assign(ctx context.Context, dir string, n int, had []int) (ports []int, err error) {
	n = min(n, Most)
	err = t.edit(ctx, func(c *content) (isChanged bool, err error) {
		b, known := c.Owners[dir]
		if known && b.Count >= n {
			ports = b.ports()[:n]
			return false, nil
		}
		c.forgetGone()
		delete(c.Owners, dir)
		if b, err = t.choose(c, dir, n, had); err != nil {
			return false, err
		}
		c.Owners[dir], ports = b, b.ports()
		return true, nil
	})
	return ports, err
}

// choose finds a block for a directory: the one that it had, if nobody has got any of it since. Otherwise it begins to
// look at a place that the directory's name tells, so that tables of different users seldom choose the same, and a lane
// that is made again mostly has what it had.
func (t *Table) choose(c *content, dir string, n int, had []int) (block, error) {
	if n == 0 {
		return block{}, nil
	}
	isTaken := func(b block) bool {
		for _, other := range c.Owners {
			if b.overlaps(other) {
				return true
			}
		}
		return false
	}
	if len(had) >= n && had[0] >= lowest && had[0]+n-1 <= highest {
		if b := (block{had[0], n}); slices.Equal(b.ports(), had[:n]) && !isTaken(b) {
			return b, nil // its own servers may listen there
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir)) // it never fails
	blocks := (highest - lowest + 1) / n
	first, last := ephemeral()
	// A system that uses all ports for connections leaves no choice.
	for _, avoided := range []bool{true, false} {
		for i := range blocks {
			b := block{lowest + (int(h.Sum32()%uint32(blocks))+i)%blocks*n, n}
			if avoided && b.overlaps(block{first, last - first + 1}) || isTaken(b) {
				continue
			}
			if !slices.ContainsFunc(b.ports(), func(port int) bool { return !t.isFree(port) }) {
				return b, nil
			}
		}
	}
	return block{}, muster.Errorf(muster.Unavailable, "no %d ports between %d and %d are free", n, lowest, highest).
		WithHint("set ports to 0, or remove lanes: muster clean")
}

// Release gives the ports of a directory back.
func (t *Table) Release(ctx context.Context, dir string) error {
	return t.edit(ctx, func(c *content) (isChanged bool, err error) {
		_, isChanged = c.Owners[dir]
		delete(c.Owners, dir)
		return isChanged, nil
	})
}

// forgetGone takes the directories that are gone from the table, whoever removed them, and returns them.
func (c *content) forgetGone() (gone []string) {
	for dir := range c.Owners {
		if durable.IsMissing(dir) {
			gone = append(gone, dir)
			delete(c.Owners, dir)
		}
	}
	return gone
}

// ForgetGone gives the ports of directories that are gone back. It returns them, and those that still have theirs.
func (t *Table) ForgetGone(ctx context.Context) (gone, present []string, err error) {
	err = t.edit(ctx, func(c *content) (isChanged bool, err error) {
		gone = c.forgetGone()
		present = slices.Collect(maps.Keys(c.Owners))
		return len(gone) > 0, nil
	})
	return gone, present, err
}

// edit lets f change the table while nobody else does. A table that cannot be read is begun anew: lanes bring what they
// had by their own record.
func (t *Table) edit(ctx context.Context, f func(*content) (isChanged bool, err error)) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return muster.Errorf(muster.Unavailable, "the table of ports cannot be kept: %w", err)
	}
	unlock, err := t.files.Lock(ctx, t.lock)
	if err != nil {
		return err
	}
	defer unlock()
	var c content
	data, err := durable.ReadRegular(t.path, maxTable)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "the table of ports %s cannot be read: %w", t.path, err)
	}
	if json.Unmarshal(data, &c) != nil || c.Owners == nil {
		c.Owners = map[string]block{}
	}
	isChanged, err := f(&c)
	if err != nil || !isChanged {
		return err
	}
	if data, err = json.Marshal(c); err != nil {
		return err
	}
	return t.files.Replace(t.path, append(data, '\n'))
}

// maxTable is how large the file may be. There are fewer ports than that.
const maxTable = 8 << 20

// ephemeral returns the range of ports from which the system takes those of outgoing connections, as far as it says so.
func ephemeral() (first, last int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return highest + 1, highest + 1
	}
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil {
		return highest + 1, highest + 1
	}
	return first, last
}

// isFree reports whether nobody listens on a port. On macOS an address may be shared with all addresses, and listening
// on all makes the system ask its user, so only the local one is tried there.
func isFree(port int) bool {
	hosts := []string{"127.0.0.1", ""}
	if runtime.GOOS == "darwin" {
		hosts = hosts[:1]
	}
	for _, host := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close() // nobody has connected
	}
	return true
}

// Environ returns the variables that tell a command its ports: MUSTER_PORT_1 and so on, and PORT, which is the first. A
// PORT that env has stays: the user has asked for it by name.
func Environ(ports []int, env []string) []string {
	var set []string
	for i, port := range ports {
		set = append(set, fmt.Sprintf("MUSTER_PORT_%d=%d", i+1, port))
	}
	hasPort := slices.ContainsFunc(env, func(kv string) bool { return len(kv) > 5 && kv[:5] == "PORT=" })
	if len(ports) > 0 && !hasPort {
		set = append(set, fmt.Sprintf("PORT=%d", ports[0]))
	}
	return set
}
