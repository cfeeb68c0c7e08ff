// Package redact keeps the user's keys out of everything that muster shows, stores or sends on.
//
// Secrets are the values to hide, in the forms in which programs print them: as they are, in URLs, in JSON, in base64,
// in hex and such. Each boundary has a function that hides them: Secrets.String and Secrets.Bytes for text,
// Secrets.Writer for a stream, whose pieces may cut a secret in two, Secrets.JSON for the arguments of calls,
// Secrets.Store for what is stored, Secrets.Model for what a model says, and Secrets.Error for its errors. FromEnviron
// finds the secrets of an environment, and IsCredential says which variables hold one.
//
// The package keeps these invariants:
//
//   - A nil *Secrets hides nothing, and costs nothing.
//   - Of a long secret each piece of 16 bytes is hidden, so that a text that was cut or wrapped does not show it.
//   - What is hidden once stays as it is when it is hidden again.
//   - No method prints, logs or returns a secret.
//
// It is no protection against a model or a program that means to carry a key away: who knows a key can write it in a
// form that nobody recognises. Against those, package proc keeps keys from all commands.
package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark is what stands in place of a secret.
const Mark = "[secret]"

// The lengths in bytes that decide what is hidden.
const (
	// minSecret is the length of the shortest secret. A shorter value is also a part of ordinary words.
	minSecret = 8
	// minPiece is the length of the shortest piece of a secret that is hidden without the rest.
	minPiece = 16
	// gram is the length of the pieces by which text is searched. A piece of minPiece bytes has a whole one at a
	// multiple of gram, wherever it begins.
	gram = 8
)

// Secrets are the values to hide. They are safe for concurrent use.
type Secrets struct {
	values []string
	made   atomic.Pointer[index] // of values and what was learned; nil: nothing was searched yet
}

// index is what values are searched by.
type index struct {
	learned *[]string // the values that were learned before it was made
	// short are the forms that are shorter than minPiece, and long all others.
	short, long [][]byte
	// longest is the length of the longest form.
	longest int
	// grams are the places of each gram in the long forms.
	grams map[uint64][]place
}

// learned are the values that Learn was given.
var (
	learned    atomic.Pointer[[]string]
	learnMutex sync.Mutex
)

// Learn adds values to all Secrets of the process that hide anything: keys that were read after it began.
func Learn(values ...string) {
	learnMutex.Lock()
	defer learnMutex.Unlock()
	var before []string
	if all := learned.Load(); all != nil {
		before = *all
	}
	if s := New(append(slices.Clone(before), values...)...); s != nil && len(s.values) > len(before) {
		learned.Store(&s.values)
	}
}

// place is where a gram begins in a form.
type place struct {
	form []byte
	at   int
}

// New returns the secrets with these values, without those that are too short or ordinary. It returns nil if none is
// left.
func New(values ...string) *Secrets {
	s := &Secrets{}
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) >= minSecret && !isOrdinary(v) && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
	if len(s.values) == 0 {
		return nil
	}
	return s
}

// With returns the secrets and more values.
func (s *Secrets) With(values ...string) *Secrets {
	if s == nil {
		return New(values...)
	}
	return New(append(slices.Clone(s.values), values...)...)
}

// isOrdinary reports whether a value also stands in texts that have nothing to do with it: a short number, words such
// as postgres, test-key and MyPassword, and the name of a variable. To hide those would spoil what a team writes.
func isOrdinary(v string) bool {
	kinds, digits, letters, upper, others := 0, 0, 0, 0, 0
	for i, c := range v {
		if strings.IndexRune(v, c) == i {
			kinds++
		}
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'A' <= c && c <= 'Z':
			upper++
			letters++
		case 'a' <= c && c <= 'z':
			letters++
		case !strings.ContainsRune("-_. /:", c):
			others++
		}
	}
	isNumber := digits == len(v) && len(v) < 10
	areWords := digits+others == 0 && (upper == letters || upper*4 <= letters)
	isVariable := areWords && upper == letters && strings.Contains(v, "_")
	return len(v) < minPiece && kinds > 2 && (isNumber || areWords) || isVariable ||
		v == "sk-no-key-required" // which users of llama.cpp write
}

// Contains reports whether text holds a secret.
func (s *Secrets) Contains(text string) bool { return s != nil && len(s.find([]byte(text))) > 0 }

// String returns text with the secrets hidden.
func (s *Secrets) String(text string) string {
	if s == nil || len(text) < minSecret {
		return text
	}
	data := []byte(text)
	if hidden := s.Bytes(data); len(hidden) != len(data) || &hidden[0] != &data[0] {
		return string(hidden)
	}
	return text
}

// Bytes returns data with the secrets hidden. It returns data itself if there are none, and never writes to it.
func (s *Secrets) Bytes(data []byte) []byte {
	if s == nil {
		return data
	}
	found := s.find(data)
	if len(found) == 0 {
		return data
	}
	return hide(data, 0, found)
}

// hide returns data from a position on, with Mark in place of the spans that were found behind it.
func hide(data []byte, from int, found []span) (out []byte) {
	for _, f := range found {
		out = append(append(out, data[from:f.from]...), Mark...)
		from = f.to
	}
	return append(out, data[from:]...)
}

// span is a piece of text.
type span struct{ from, to int }

// find returns the pieces of data that are secrets, in order. They do not overlap.
func (s *Secrets) find(data []byte) (found []span) {
	x := s.index()
	for _, form := range x.short {
		for from := 0; ; {
			i := bytes.Index(data[from:], form)
			if i < 0 {
				break
			}
			found = append(found, span{from + i, from + i + len(form)})
			from += i + len(form)
		}
	}
	for at := 0; len(x.long) > 0 && at+gram <= len(data); at += gram {
		if f, ok := widest(data, at, x.grams[binary.LittleEndian.Uint64(data[at:])]); ok {
			found = append(found, f)
			at = max(at, (f.to/gram-1)*gram)
		}
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	return merge(found)
}

// merge joins the spans of a sorted list that overlap.
func merge(sorted []span) []span {
	out := sorted[:1]
	for _, f := range sorted[1:] {
		if last := &out[len(out)-1]; f.from <= last.to {
			last.to = max(last.to, f.to)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// widest returns the longest piece of a long form that has the gram at a position of data in it. ok is false for a
// piece that is too short to hide.
func widest(data []byte, at int, places []place) (f span, ok bool) {
	for _, p := range places {
		l, r := 0, gram
		for l < p.at && l < at && p.form[p.at-l-1] == data[at-l-1] {
			l++
		}
		for p.at+r < len(p.form) && at+r < len(data) && p.form[p.at+r] == data[at+r] {
			r++
		}
		if l+r >= minPiece && l+r > f.to-f.from {
			f, ok = span{at - l, at + r}, true
		}
	}
	return f, ok
}

// safeEnd returns up to where data can be shown while more may follow: what is behind it may be the beginning of a
// secret.
func (s *Secrets) safeEnd(data []byte) int {
	n, x := 0, s.index()
	for _, forms := range [][][]byte{x.short, x.long} {
		for _, form := range forms {
			for k := min(len(form)-1, len(data)); k > n; k-- {
				if data[len(data)-k] == form[0] && bytes.HasPrefix(form, data[len(data)-k:]) {
					n = k
					break
				}
			}
		}
	}
	end := len(data) - n
	if n == 0 {
		return end
	}
	// The end of a secret may be the beginning of the next. It is not cut in two.
	before := max(0, end-x.longest)
	for _, f := range s.find(data[before:]) {
		if before+f.from < end && end < before+f.to {
			end = before + f.to
		}
	}
	return end
}

// index returns the index of the values and of what was learned.
func (s *Secrets) index() *index {
	more := learned.Load()
	x := s.made.Load()
	if x != nil && x.learned == more {
		return x
	}
	values := s.values
	if more != nil {
		values = slices.Concat(values, *more)
	}
	x = newIndex(values)
	x.learned = more
	s.made.Store(x)
	return x
}

func newIndex(values []string) *index {
	seen := map[string]bool{}
	x := &index{grams: map[uint64][]place{}}
	for _, v := range values {
		for _, form := range forms(v) {
			data := []byte(form)
			switch {
			case len(form) < minSecret || seen[form] || len(form) < minPiece && isOrdinary(form):
			case len(form) < minPiece:
				x.short = append(x.short, data)
			default:
				x.long = append(x.long, data)
				for i := range len(data) - gram + 1 {
					g := binary.LittleEndian.Uint64(data[i:])
					x.grams[g] = append(x.grams[g], place{data, i})
				}
			}
			seen[form] = true
			x.longest = max(x.longest, len(form))
		}
	}
	return x
}
