package memory

import (
	"fmt"
	"strings"
	"unicode"

	"muster/internal/text"
)

// phrase is how many words in a row must be the same for a text to come from another one. A whole line is enough if it
// has minWords.
const (
	phrase   = 8
	minWords = 3
)

// Sources compares what a member saves with what tools have told it.
type Sources struct {
	memory Memory
	lines  []string
	words  []word           // of the description, and then of the lines
	at     map[string][]int // by a phrase, or by a line that is shorter, the numbers of their first words
	starts map[string]bool  // the words with which a phrase begins
	from   map[int]string   // by the number of a line, -1 for the description, the call that had printed it
}

// word is a word of a text, with the number of its line.
type word struct {
	text string
	line int
}

// NewSources begins to compare the description and the content of a memory.
func NewSources(m Memory) *Sources {
	s := &Sources{memory: m, lines: strings.Split(m.Content, "\n"), at: map[string][]int{},
		starts: map[string]bool{}, from: map[int]string{}}
	add := func(text string, line int) {
		first := len(s.words)
		for _, w := range wordsOf(text) {
			s.words = append(s.words, word{w, line})
		}
		if n := len(s.words) - first; n >= minWords && n < phrase {
			s.note(first, n)
		}
	}
	add(m.Description, -1)
	text := len(s.words)
	for i, line := range s.lines {
		add(line, i)
	}
	for i := range s.words {
		// A phrase may go on in the next line, but not from the description into the text.
		if i+phrase <= len(s.words) && (i >= text || i+phrase <= text) {
			s.note(i, phrase)
		}
	}
	return s
}

// note notes that n words begin at a place.
func (s *Sources) note(first, n int) {
	texts := make([]string, n)
	for i, w := range s.words[first : first+n] {
		texts[i] = w.text
	}
	key := strings.Join(texts, " ")
	s.at[key], s.starts[texts[0]] = append(s.at[key], first), true
}

// Add compares with what a call has returned. Of two calls that have returned the same the first counts.
func (s *Sources) Add(call, output string) {
	words := wordsOf(output)
	// What the call says is a model's words, and must not end the mark that it stands in.
	call = short(text.EscapeTags(strings.NewReplacer("[", "(", "]", ")").Replace(call)))
	for i := range words {
		if !s.starts[words[i]] {
			continue
		}
		for n := minWords; n <= phrase && i+n <= len(words); n++ {
			for _, first := range s.at[strings.Join(words[i:i+n], " ")] {
				for _, w := range s.words[first : first+n] {
					if s.from[w.line] == "" {
						s.from[w.line] = call
					}
				}
			}
		}
	}
}

// Memory returns the memory with its origins: their names, and a mark before each line that a call had printed.
func (s *Sources) Memory() Memory {
	m, seen := s.memory, map[string]bool{}
	note := func(call string) {
		if call != "" && !seen[call] && len(m.Origins) < maxOrigins {
			seen[call] = true
			m.Origins = append(m.Origins, call)
		}
	}
	note(s.from[-1])
	for i, line := range s.lines {
		if call := s.from[i]; call != "" && strings.TrimSpace(line) != "" {
			note(call)
			s.lines[i] = fmt.Sprintf("[from the output of %s] %s", call, line)
		}
	}
	m.Content = strings.Join(s.lines, "\n")
	return m
}

// wordsOf returns the words of a text, in lower case and without what stands around them, or is not seen in them. A
// character of a script that puts no blanks between words is a word.
func wordsOf(text string) []string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.Is(unicode.Cf, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			b.WriteString(" " + string(r) + " ")
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}
