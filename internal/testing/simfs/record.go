package simfs

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
)

// call is one recorded call: it makes updates, or makes earlier ones durable.
type call struct {
	text    string
	updates []*update
	sync    *node // a file or a directory
}

// update is what persists as a whole or not at all, but for the bytes of a write.
type update struct {
	text  string
	edits []edit    // of names
	needs []*update // that this one cannot do without

	node  *node // whose content changes
	off   int64
	data  []byte
	size  int64 // when it is a resize
	write bool
}

// edit gives a name to a node, or takes it away.
type edit struct {
	dir  *node
	name string
	node *node
}

// image is what the disk has of a node. It is never changed: an update makes a new one.
type image struct {
	data    []byte
	entries map[string]*node
}

// Settle says that the disk has everything as it is now. Records begin anew.
func (f *FS) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.base = nil, map[*node]*image{}
	f.settle(f.root)
}

func (f *FS) settle(n *node) {
	if f.base[n] != nil {
		return
	}
	f.base[n] = &image{bytes.Clone(n.data), maps.Clone(n.entries)}
	for _, child := range n.entries {
		f.settle(child)
	}
}

// Calls is how many calls are recorded so far: a moment to ask Crashes about.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// rename does edits and records them as one update; a move to another directory is two.
func (f *FS) rename(text string, edits ...edit) {
	for _, e := range edits {
		if e.node == nil {
			delete(e.dir.entries, e.name)
		} else {
			e.dir.entries[e.name] = e.node
		}
		e.dir.changed = time.Now()
	}
	c := call{text: text, updates: []*update{{text: text, edits: edits}}}
	if len(edits) == 2 && edits[0].dir != edits[1].dir {
		there := &update{text: text + " (the new name)", edits: edits[:1]}
		c.updates = []*update{there, {text: text + " (the old name gone)", edits: edits[1:], needs: []*update{there}}}
	}
	f.calls = append(f.calls, c)
}

// write writes and records.
func (f *FS) write(name string, n *node, off int64, b []byte) {
	u := &update{text: fmt.Sprintf("write %d bytes at %d of %s", len(b), off, name), node: n, off: off,
		data: bytes.Clone(b), write: true}
	n.data = u.full(n.data)
	n.changed = time.Now()
	f.calls = append(f.calls, call{text: u.text, updates: []*update{u}})
}

// resize cuts or fills and records.
func (f *FS) resize(name string, n *node, size int64) {
	u := &update{text: fmt.Sprintf("cut %s to %d bytes", name, size), node: n, size: size}
	n.data = u.full(n.data)
	n.changed = time.Now()
	f.calls = append(f.calls, call{text: u.text, updates: []*update{u}})
}

// full is a content after all of the update.
func (u *update) full(data []byte) []byte {
	if !u.write {
		return sized(data, u.size)
	}
	return u.put(data, 0, len(u.data), len(u.data))
}

// put is a content after those bytes of a write, from one to another, and the size of so many.
func (u *update) put(data []byte, from, to, size int) []byte {
	out := sized(data, max(int64(len(data)), u.off+int64(size)))
	copy(out[u.off+int64(from):], u.data[from:to])
	return out
}

// sized is a copy of data with that size; what is new is zero.
func sized(data []byte, size int64) []byte {
	out := make([]byte, size)
	copy(out, data)
	return out
}

// apply does the whole update on the disk.
func (u *update) apply(disk map[*node]*image) {
	for _, e := range u.edits {
		entries := maps.Clone(imageOf(disk, e.dir).entries)
		if entries == nil {
			entries = map[string]*node{}
		}
		if e.node == nil {
			delete(entries, e.name)
		} else {
			entries[e.name] = e.node
		}
		disk[e.dir] = &image{entries: entries}
	}
	if u.node != nil {
		disk[u.node] = &image{data: u.full(imageOf(disk, u.node).data)}
	}
}

func imageOf(disk map[*node]*image, n *node) *image {
	if i := disk[n]; i != nil {
		return i
	}
	return &image{}
}

// made are the updates that the sync of n makes durable, in their order.
func made(pending []*update, n *node, journal bool) (durable, left []*update) {
	in := map[*update]bool{}
	var take func(u *update)
	take = func(u *update) {
		if !in[u] && slices.Contains(pending, u) {
			in[u] = true
			for _, d := range u.needs {
				take(d)
			}
		}
	}
	for _, u := range pending {
		if u.node == n || journal && u.edits != nil ||
			slices.ContainsFunc(u.edits, func(e edit) bool { return e.dir == n }) {
			take(u)
		}
	}
	for _, u := range pending {
		if in[u] {
			durable = append(durable, u)
		} else {
			left = append(left, u)
		}
	}
	return durable, left
}

// order makes each update of a name need the one before it, of a journal the one before it of any name.
func order(pending []*update, u *update, journal bool) {
	for _, e := range u.edits {
		for i := len(pending) - 1; i >= 0; i-- {
			same := func(o edit) bool { return o.dir == e.dir && o.name == e.name }
			if journal && pending[i].edits != nil || slices.ContainsFunc(pending[i].edits, same) {
				u.needs = append(u.needs, pending[i])
				break
			}
		}
	}
}
