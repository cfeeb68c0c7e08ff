package simfs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"muster/internal/durable"
)

// Crash is one content that the disk may have when the power fails.
type Crash struct {
	Calls int      // after so many calls
	Sum   [32]byte // of all names and contents
	Seen  [32]byte // the same without temporaries, which no reader looks at
	left  map[*node]*image
	root  *node
	how   string
}

// Options say how far Crashes goes.
type Options struct {
	From int // the first moment, in calls
	// Cuts is at how many bytes each write is torn, spread over it; beside them at the bounds of its sectors. 0: at
	// every one.
	Cuts int
	// Moments are when something was acknowledged, in calls: the same content before and after one is two states.
	Moments []int
	// Journal is the stricter order of a file system with a journal, as ext4 is: names change on the disk in the
	// order of the calls, and any sync makes all earlier changes of names durable.
	Journal bool
}

// Crashes are all contents after each call, each once between two moments.
func (f *FS) Crashes(o Options) iter.Seq[Crash] {
	f.mu.Lock()
	calls, disk, root := slices.Clone(f.calls), maps.Clone(f.base), f.root
	f.mu.Unlock()
	return func(yield func(Crash) bool) {
		var pending []*update
		seen := map[[32]byte]bool{}
		for n := range len(calls) + 1 {
			if slices.Contains(o.Moments, n) || n == 0 {
				clear(seen)
			}
			if n > 0 {
				c := calls[n-1]
				if c.sync != nil {
					var done []*update
					done, pending = made(pending, c.sync, o.Journal)
					for _, u := range done {
						u.apply(disk)
					}
				}
				for _, u := range c.updates {
					needs := u.needs
					u = &update{u.text, u.edits, nil, u.node, u.off, u.data, u.size, u.write}
					if len(needs) > 0 { // the old name needs the new one, which is the last that was added
						u.needs = []*update{pending[len(pending)-1]}
					}
					order(pending, u, o.Journal)
					pending = append(pending, u)
				}
			}
			if n < o.From {
				continue
			}
			for c := range choices(pending, o.Cuts) {
				left := maps.Clone(disk)
				c.apply(left)
				sum := hash(left, root, true)
				if seen[sum] {
					continue
				}
				seen[sum] = true
				if !yield(Crash{Calls: n, Sum: sum, Seen: hash(left, root, false), left: left, root: root,
					how: story(calls[:n], c)}) {
					return
				}
			}
		}
	}
}

// story says how a crash came about.
func story(calls []call, c choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the power fails after call %d", len(calls))
	for i := max(0, len(calls)-12); i < len(calls); i++ {
		fmt.Fprintf(&b, "\n  call %d: %s", i+1, calls[i].text)
	}
	for _, l := range c {
		fmt.Fprintf(&b, "\n  not synced: %s: %s", l.update.text, l)
	}
	return b.String()
}

// String is the calls before the crash, and what is left of those that were not synced.
func (c Crash) String() string {
	var b strings.Builder
	b.WriteString(c.how)
	each(c.left, c.root, "", func(name string, dir bool, data []byte) {
		if !dir {
			fmt.Fprintf(&b, "\n  the disk has %s: %q", name, data)
		}
	})
	return b.String()
}

// FS is the disk as it is found when the power is back.
func (c Crash) FS() *FS {
	f := &FS{locks: map[string]int{}, made: map[string]bool{}}
	again := map[*node]*node{} // files with two names stay one
	var copied func(n *node) *node
	copied = func(n *node) *node {
		if m := again[n]; m != nil {
			return m
		}
		m := newNode(n.dir)
		again[n] = m
		was := imageOf(c.left, n)
		m.data = slices.Clone(was.data)
		for name, child := range was.entries {
			m.entries[name] = copied(child)
		}
		return m
	}
	f.root = copied(c.root)
	f.Settle()
	return f
}

// each visits all that the disk has, by name.
func each(disk map[*node]*image, n *node, name string, f func(name string, dir bool, data []byte)) {
	i := imageOf(disk, n)
	f(name, n.dir, i.data)
	for _, base := range slices.Sorted(maps.Keys(i.entries)) {
		each(disk, i.entries[base], name+"/"+base, f)
	}
}

func hash(disk map[*node]*image, root *node, all bool) (sum [32]byte) {
	h := sha256.New()
	var size [8]byte
	put := func(b []byte) {
		binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	each(disk, root, "", func(name string, _ bool, data []byte) {
		if all || !durable.IsTemporary(path.Base(name)) {
			put([]byte(name))
			put(data)
		}
	})
	h.Sum(sum[:0])
	return sum
}
