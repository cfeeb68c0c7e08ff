package view

import (
	"slices"
	"sync"
	"sync/atomic"

	"muster"
	"muster/internal/text"
)

// Paint colours text. Without colour, as the zero value is, no escape sequence is written at all.
type Paint struct{ names *names }

// Colours returns a Paint that colours. members returns the members in the order in which they joined, from which their
// colours follow, so that every face and command shows a member in the same one; nil: they are coloured in the order in
// which they are shown.
func Colours(members func() []muster.Name) Paint { return Paint{&names{members: members}} }

// InFull returns the Paint for a terminal that has all colours, and not 256.
func (p Paint) InFull() Paint {
	if p.IsOn() {
		p.names.hasAll = true
	}
	return p
}

// IsOn reports whether the paint colours.
func (p Paint) IsOn() bool { return p.names != nil }

// IsLight reports whether the terminal has a light ground, as far as is known.
func (p Paint) IsLight() bool { return p.IsOn() && p.names.isLight.Load() }

// OnLight says whether the terminal has a light ground.
func (p Paint) OnLight(isLight bool) {
	if p.IsOn() {
		p.names.isLight.Store(isLight)
	}
}

// names are the names that have a colour, and what is known of the terminal.
type names struct {
	isLight atomic.Bool // its ground
	hasAll  bool        // it has all colours, and not 256

	members func() []muster.Name
	mu      sync.Mutex
	order   []string
}

// palette has the SGR codes of the colours of members: they differ from each other and from the tones, on a dark ground
// and on a light one.
var palette = [...]string{"38;5;69", "38;5;170", "38;5;37", "38;5;137", "38;5;98", "38;5;168", "38;5;74", "38;5;101"}

// nameColour returns the SGR code of the colour of a name. A member's is never that of a tone, because a name is
// neither good nor bad news.
func (p Paint) nameColour(name string) string {
	switch name {
	case "", "landing", "board", "muster", "state", "lanes", string(muster.User), string(muster.System):
		return ""
	case string(muster.Lead):
		return "1"
	}
	if !p.IsOn() {
		return ""
	}
	n := p.names
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.Index(n.order, name)
	if at < 0 && n.members != nil { // a member has joined
		for _, member := range n.members() {
			if s := text.OneLine(string(member)); member != muster.Lead && !slices.Contains(n.order, s) {
				n.order = append(n.order, s)
			}
		}
		at = slices.Index(n.order, name)
	}
	if at < 0 {
		n.order = append(n.order, name)
		at = len(n.order) - 1
	}
	return palette[at%len(palette)]
}

// In colours s in a tone.
func (p Paint) In(t Tone, s string) string { return p.code(toneCodes[t], s) }

// Bold makes s bold.
func (p Paint) Bold(s string) string { return p.code("1", s) }

// Who colours s in the colour of a name.
func (p Paint) Who(name, s string) string { return p.code(p.nameColour(name), s) }

// code colours s by an SGR number. It returns s unchanged where there is nothing to colour.
func (p Paint) code(code, s string) string {
	if !p.IsOn() || code == "" || s == "" {
		return s
	}
	return string(p.pad(nil, code, s, 0))
}

// pad appends s in a colour, filled with spaces to n columns. A colour costs no column.
func (p Paint) pad(to []byte, code, s string, n int) []byte {
	fill := max(n-text.Columns(s), 0)
	painted := p.IsOn() && code != "" && len(s)+fill > 0
	if painted {
		to = append(append(append(to, "\x1b["...), code...), 'm')
	}
	to = append(to, s...)
	for range fill {
		to = append(to, ' ')
	}
	if painted {
		to = append(to, "\x1b[0m"...)
	}
	return to
}
