// Package secrets finds keys, tokens and passwords in changed files before they land.
//
// Scan looks at what a Change adds: a finding whose lines were all in the file before is not new. It uses the rules of
// gitleaks (rules.go), as data: gitleaks itself would bring a program's settings and a WebAssembly runtime along. A
// rule is tried only around its keywords, so that text without keys costs little.
//
// The package keeps these invariants:
//
//   - A Finding does not have the key that was found, and nothing here prints or returns one.
//   - Nothing in a repository switches a rule off: agents write its files, so comments such as gitleaks:allow and git's
//     attributes do not count. What the user has allowed is up to the caller, by Finding.Fingerprint.
//   - What is looked at is bounded: see MaxFile and MaxAll.
//
// It keeps mistakes from landing. Who means to land a key can write it in a form that no rule knows. Package redact
// hides the keys that the user is known to have; this one knows none.
package secrets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// The limits on what is looked at. A file that is larger is left out: nobody writes keys into it by hand.
const (
	MaxFile = 4 << 20
	MaxAll  = 64 << 20
)

// Change is a changed file.
type Change struct {
	Path string
	// Old are the contents from which it was made: none for a new file, several for a merge.
	Old [][]byte
	New []byte
}

// Finding is what looks like a key.
type Finding struct {
	File string
	Line int // of its beginning, from 1
	Rule string
	// Fingerprint stands for the rule, the file and the key, wherever in the file it stands.
	Fingerprint string
}

// Scan returns what looks like a key in the lines that the changes add, each once.
func Scan(changes []Change) (all []Finding) {
	// A change of a thousand generated files must not hold up the landings of others.
	left := MaxAll
	for _, c := range changes {
		// A NUL makes a file binary, as for git.
		isBinary := bytes.IndexByte(c.New[:min(len(c.New), 8000)], 0) >= 0
		if isBinary || len(c.New) > min(MaxFile, left) || matchesAny(rules().Allow.files, c.Path) {
			continue
		}
		left -= len(c.New)
		for _, f := range newScan(c).run() {
			if !slices.ContainsFunc(all, func(x Finding) bool { return x.Fingerprint == f.Fingerprint }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// scan is the search in one file.
type scan struct {
	path, text string
	starts     []int  // where each line begins, and the end of the text
	isNew      []bool // by line: it was in none of the old contents
	spans      map[*rule][]span
	found      []located
}

// span is a piece of the text.
type span struct{ from, to int }

// located is a finding with its place in the text.
type located struct {
	Finding
	span
}

// newScan splits the text into lines, and finds out which of them are new. An end of a line in another style makes no
// line new: otherwise a file that is converted would bring all its old findings again.
func newScan(c Change) *scan {
	s := &scan{path: c.Path, text: string(c.New), spans: map[*rule][]span{}}
	known := map[string]bool{}
	for _, old := range c.Old {
		for line := range bytes.Lines(old) {
			known[string(bytes.TrimRight(line, "\r\n"))] = true
		}
	}
	at := 0
	for line := range strings.Lines(s.text) {
		s.starts = append(s.starts, at)
		s.isNew = append(s.isNew, !known[strings.TrimRight(line, "\r\n")])
		at += len(line)
	}
	s.starts = append(s.starts, at)
	return s
}

// lineAt returns the line, from 0, in which a place of the text is.
func (s *scan) lineAt(at int) int {
	line, found := slices.BinarySearch(s.starts, at)
	if !found {
		line--
	}
	return min(line, len(s.isNew)-1)
}

// addsTo reports whether a line of the span is new.
func (s *scan) addsTo(x span) bool {
	return slices.Contains(s.isNew[s.lineAt(x.from):s.lineAt(max(x.from, x.to-1))+1], true)
}

func (s *scan) run() (all []Finding) {
	if len(s.isNew) == 0 || !slices.Contains(s.isNew, true) {
		return nil
	}
	s.findKeywords()
	for _, r := range rules().always {
		s.spans[r] = []span{{0, len(s.text)}}
	}
	for _, r := range rules().Rules { // in the order of the file, so that the result has an order too
		if len(s.spans[r]) > 0 && (r.Path == "" || r.path().MatchString(s.path)) {
			s.try(r)
		}
	}
	for _, f := range s.found {
		// Of two rules that match the same key, the one that knows its kind says more.
		isKnown := f.Rule == genericRule && slices.ContainsFunc(s.found, func(x located) bool {
			return x.Rule != genericRule && x.from < f.to && f.from < x.to
		})
		if !isKnown {
			all = append(all, f.Finding)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return a.Line - b.Line })
	return all
}

// How much of the text around a keyword is looked at. Long lines are not looked at whole: a rule would be tried on
// all of a file of one line for each of its keywords.
const (
	bytesBefore = 300
	bytesBehind = 600
)

// findKeywords notes for each rule the pieces of the text around its keywords that have a new line.
func (s *scan) findKeywords() {
	set, lower := rules(), lowerASCII(s.text)
	for at := range len(lower) - 1 {
		for _, k := range set.byPair[pairAt(lower, at)] {
			if !bytes.HasPrefix(lower[at:], []byte(k.text)) {
				continue
			}
			line := s.lineAt(at)
			end := s.starts[min(line+k.rule.lines, len(s.isNew))]
			x := span{max(at-bytesBefore, s.starts[line]), min(at+bytesBehind, end)}
			if !s.addsTo(x) {
				continue
			}
			spans := s.spans[k.rule]
			// Keywords come in the order of the text, so only the last piece can reach to this one.
			// Pieces that overlap are one, so that no match is cut in two or found twice.
			if n := len(spans); n > 0 && x.from <= spans[n-1].to {
				spans[n-1].to = max(x.to, spans[n-1].to)
				continue
			}
			s.spans[k.rule] = append(spans, x)
		}
	}
}

// lowerASCII returns a text in lower case with each byte in its place.
func lowerASCII(text string) []byte {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}

func (s *scan) try(r *rule) {
	re := r.compiled()
	for _, piece := range s.spans[r] {
		text := s.text[piece.from:piece.to]
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			key := keyIn(re, r.Group, m)
			whole := span{piece.from + key.from, piece.from + key.to}
			line := s.lineAt(whole.from)
			value := s.text[whole.from:whole.to]
			lineText := s.text[s.starts[line]:s.starts[line+1]]
			if !s.addsTo(whole) || !r.isKey(s.path, lineText, text[m[0]:m[1]], value) {
				continue
			}
			// The key goes into the sum and nowhere else. A part of the sum tells findings apart, and is short to type.
			sum := sha256.Sum256([]byte(r.ID + "\x00" + s.path + "\x00" + value))
			f := Finding{File: s.path, Line: line + 1, Rule: r.ID, Fingerprint: hex.EncodeToString(sum[:8])}
			s.found = append(s.found, located{f, whole})
		}
	}
}

func keyIn(re *regexp.Regexp, group int, m []int) span {
	for g := max(group, 1); g <= re.NumSubexp(); g++ {
		if m[2*g] >= 0 && m[2*g] < m[2*g+1] {
			return span{m[2*g], m[2*g+1]}
		}
	}
	return span{m[0], m[1]}
}

// longestPrivate is the length in bytes of the longest private key that Keys returns whole.
const longestPrivate = 16 << 10

// Keys returns what looks like a key in a file. It is for those who hide keys: a Finding has none. A private key is
// returned up to its end, of which its rule needs the beginning only.
func Keys(path string, data []byte) (keys []string) {
	s := newScan(Change{Path: path, New: data})
	s.run()
	for _, f := range s.found {
		if f.Rule == privateKeyRule {
			rest := s.text[f.to:min(len(s.text), f.to+longestPrivate)]
			body, _, _ := strings.Cut(rest, "-----END") // a text that was cut may have no end
			f.to += len(body)
		}
		keys = append(keys, s.text[f.from:f.to])
	}
	return keys
}
