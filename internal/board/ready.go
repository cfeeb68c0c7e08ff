package board

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"muster"
)

// slot is the place of a claimable task in its queue.
type slot struct {
	priority int
	id       muster.TaskID
}

// before orders slots: the higher priority first, then the lower id.
func before(a, b slot) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
}

// queues are the claimable tasks by the role that may take them; "" is the queue for everyone.
type queues map[string]*queue

// gate returns the key of a role's queue. Roles are compared without regard to case.
func gate(role string) string { return strings.ToLower(role) }

func (q queues) add(role string, s slot) {
	if q[gate(role)] == nil {
		q[gate(role)] = &queue{}
	}
	q[gate(role)].add(s)
}

func (q queues) remove(role string, s slot) { q[gate(role)].remove(s) }

// size is how many tasks a member of the role may claim.
func (q queues) size(role string) (n int) {
	n = q[""].size()
	if role != "" {
		n += q[gate(role)].size()
	}
	return n
}

// forRole yields what a member of the role may claim, in order: it merges the queue of the role with the one for
// everyone. Nothing may be added to or removed from the queues meanwhile.
func (q queues) forRole(role string) iter.Seq[muster.TaskID] {
	return func(yield func(muster.TaskID) bool) {
		own := &queue{}
		if role != "" && q[gate(role)] != nil {
			own = q[gate(role)]
		}
		next, stop := iter.Pull(own.all())
		defer stop()
		mine, more := next()
		if q[""] != nil {
			for s := range q[""].all() {
				for ; more && before(mine, s) < 0; mine, more = next() {
					if !yield(mine.id) {
						return
					}
				}
				if !yield(s.id) {
					return
				}
			}
		}
		for ; more; mine, more = next() {
			if !yield(mine.id) {
				return
			}
		}
	}
}

// block is how many slots a block of a queue has before it is split in two.
const block = 512

// queue is slots in order. They are in blocks, so that a change moves at most one block however long the queue is. No
// block is empty.
type queue struct {
	blocks [][]slot
}

// find returns the block s belongs to and its place there.
func (q *queue) find(s slot) (i, j int, found bool) {
	i, _ = slices.BinarySearchFunc(q.blocks, s, func(b []slot, s slot) int { return before(b[len(b)-1], s) })
	if i == len(q.blocks) {
		return i, 0, false
	}
	j, found = slices.BinarySearchFunc(q.blocks[i], s, before)
	return i, j, found
}

// add inserts s at its place, if it is not there already.
func (q *queue) add(s slot) {
	i, j, found := q.find(s)
	switch {
	case found:
		return
	case len(q.blocks) == 0:
		q.blocks = [][]slot{{s}}
		return
	case i == len(q.blocks): // after all others
		i--
		j = len(q.blocks[i])
	}
	b := slices.Insert(q.blocks[i], j, s)
	q.blocks[i] = b
	if len(b) > block {
		half := len(b) / 2
		q.blocks[i] = slices.Clone(b[:half])
		q.blocks = slices.Insert(q.blocks, i+1, slices.Clone(b[half:]))
	}
}

// remove deletes s, if it is there.
func (q *queue) remove(s slot) {
	i, j, found := q.find(s)
	if !found {
		return
	}
	q.blocks[i] = slices.Delete(q.blocks[i], j, j+1)
	if len(q.blocks[i]) == 0 {
		q.blocks = slices.Delete(q.blocks, i, i+1)
	}
}

func (q *queue) size() (n int) {
	if q == nil {
		return 0
	}
	for _, b := range q.blocks {
		n += len(b)
	}
	return n
}

// all yields the slots in order.
func (q *queue) all() iter.Seq[slot] {
	return func(yield func(slot) bool) {
		for _, b := range q.blocks {
			for _, s := range b {
				if !yield(s) {
					return
				}
			}
		}
	}
}
