package simfs

import (
	"fmt"
	"iter"
	"slices"
)

// sector is what a disk writes at once.
const sector = 512

// leftover is what is left of an update: of a write the bytes from one to another, and the size of so many.
type leftover struct {
	update   *update
	kept     bool
	from, to int
	size     int
}

// String says it.
func (l leftover) String() string {
	all := len(l.update.data)
	switch {
	case !l.kept:
		return "lost"
	case !l.update.write || l.from == 0 && l.to == all:
		return "kept"
	case l.to == l.from:
		return fmt.Sprintf("only the size of %d bytes, zeros", l.size)
	case l.from == 0 && l.size == l.to:
		return fmt.Sprintf("only its first %d bytes", l.to)
	}
	return fmt.Sprintf("only its bytes %d to %d, zeros elsewhere", l.from, l.to)
}

// choice is one leftover for each update that is not durable.
type choice []leftover

// apply does on the disk what is left.
func (c choice) apply(disk map[*node]*image) {
	for _, l := range c {
		switch {
		case !l.kept:
		case l.update.write:
			disk[l.update.node] = &image{data: l.update.put(imageOf(disk, l.update.node).data, l.from, l.to, l.size)}
		default:
			l.update.apply(disk)
		}
	}
}

func lost(u *update) leftover { return leftover{update: u} }

func kept(u *update) leftover {
	return leftover{update: u, kept: true, to: len(u.data), size: len(u.data)}
}

func zeros(u *update) leftover { return leftover{update: u, kept: true, size: len(u.data)} }

// torn are the ways to have some of a write.
func torn(u *update, cuts int) (out []leftover) {
	n := len(u.data)
	for at := 1; at < n; at++ {
		bound := (u.off+int64(at))%sector == 0
		if cuts == 0 || bound || at == n-1 || at*cuts/n != (at-1)*cuts/n {
			out = append(out, leftover{u, true, 0, at, at}) // the rest was not written
		}
		if bound || at == n/2 || at == n-1 {
			out = append(out, leftover{u, true, 0, at, n}, leftover{u, true, at, n, n}) // zeros behind, or before
		}
	}
	return out
}

// many is from how many updates on not every subset is tried, but only those that leave out, or have, one or two.
const many = 7

// choices are all that may be left of updates that are not durable.
func choices(pending []*update, cuts int) iter.Seq[choice] {
	return func(yield func(choice) bool) {
		var names, writes []*update
		for _, u := range pending {
			if u.write {
				writes = append(writes, u)
			} else {
				names = append(names, u)
			}
		}
		data := contents(writes, cuts)
		for have := range subsets(len(names)) {
			if !whole(names, have) {
				continue
			}
			for _, d := range data {
				c := make(choice, 0, len(pending))
				for _, u := range pending {
					if i := slices.Index(names, u); i >= 0 && have[i] {
						c = append(c, kept(u))
					} else if i >= 0 {
						c = append(c, lost(u))
					} else {
						c = append(c, d[slices.Index(writes, u)])
					}
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// whole reports whether every update that is had has what it needs.
func whole(names []*update, have []bool) bool {
	for i, u := range names {
		for _, d := range u.needs {
			if at := slices.Index(names, d); have[i] && at >= 0 && !have[at] {
				return false
			}
		}
	}
	return true
}

// contents are what may be left of writes: each whole, lost or zero in all combinations (of few), and each torn in turn
// while the others are whole or lost.
func contents(writes []*update, cuts int) []choice {
	some := func(have []bool) choice {
		c := choice{}
		for i, u := range writes {
			if have[i] {
				c = append(c, kept(u))
			} else {
				c = append(c, lost(u))
			}
		}
		return c
	}
	var out []choice
	for have := range subsets(len(writes)) {
		c := some(have)
		out = append(out, c)
		for i, u := range writes {
			if !have[i] {
				continue
			}
			z := slices.Clone(c)
			z[i] = zeros(u)
			out = append(out, z)
			if before, all := alike(have, i); !before || !all {
				continue
			}
			for _, l := range torn(u, cuts) {
				t := slices.Clone(c)
				t[i] = l
				out = append(out, t)
			}
		}
	}
	return out
}

// alike reports whether what is had before a place is all of it, and what comes after it is all or nothing.
func alike(have []bool, at int) (before, after bool) {
	before = !slices.Contains(have[:at], false)
	rest := have[at+1:]
	return before, len(rest) == 0 || !slices.Contains(rest, !rest[0])
}

// subsets of n things: all of few, of many those that are nearly none or nearly all, and the beginnings.
func subsets(n int) iter.Seq[[]bool] {
	return func(yield func([]bool) bool) {
		if n < many {
			for bits := range 1 << n {
				have := make([]bool, n)
				for i := range have {
					have[i] = bits>>i&1 == 1
				}
				if !yield(have) {
					return
				}
			}
			return
		}
		for _, most := range []bool{false, true} {
			for i := range n + 1 {
				start := make([]bool, n)
				for j := range start {
					start[j] = j < i != most
				}
				for j := i; j <= n; j++ { // n: none is the other way
					have := slices.Repeat([]bool{most}, n)
					if i < n {
						have[i] = !most
					}
					if j < n {
						have[j] = !most
					}
					if !yield(have) {
						return
					}
				}
				if !yield(start) {
					return
				}
			}
		}
	}
}
