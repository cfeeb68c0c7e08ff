package secrets

import (
	_ "embed" // for the rules
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"muster/internal/lazyregexp"
)

// rulesFile is the rules of gitleaks 8.30.1, whose licence is beside it, in the form of ruleSet. It leaves out rules
// for what is public (ids of clients, public keys), for Kubernetes, and for names of files. The rule for private keys
// asks only for the beginning of one, so that it needs no whole file. That for JSON web tokens has a longer keyword.
// That for tokens of Vault has none for their old form, whose beginning, "s.", is in all source code.
//
//go:embed rules.json
var rulesFile []byte

// ruleSet is the form of the file.
type ruleSet struct {
	Allow exemption `json:"allow"` // for all rules
	Rules []*rule   `json:"rules"`

	// byPair are the rules' keywords by their first two bytes.
	byPair [1 << 16][]keyword
	always []*rule // have no keyword
}

// rule is what one kind of key looks like.
type rule struct {
	ID    string `json:"id"`
	Regex string `json:"regex"`
	// Keywords are in lower case. Text without one of them holds no key of this kind.
	Keywords []string `json:"keywords"`
	// Entropy is how many bits each character of a key has at least.
	Entropy float64     `json:"entropy"`
	Group   int         `json:"group"` // the part of the expression that is the key; 0: the first that is not empty
	Path    string      `json:"path"`  // an expression for the files in which it counts
	Allow   []exemption `json:"allow"`

	compiled, path func() *regexp.Regexp
	// lines is how many lines a match may have, from that of the keyword on.
	lines int
}

// exemption says what a rule matches and is no key.
type exemption struct {
	Regexes        []string `json:"regexes"`
	Target         string   `json:"target"` // what Regexes match: the key (""), the "match" of the rule, or its "line"
	Words          []string `json:"words"`  // in the key, in lower case
	Files          []string `json:"paths"`  // expressions for paths
	regexes, files []func() *regexp.Regexp
}

// keyword is a keyword of a rule.
type keyword struct {
	text string
	rule *rule
}

// rules reads the file. It panics if that is wrong, which a test would show. No expression is compiled before a text
// has a keyword of its rule: to compile all of them takes longer than most landings have lines.
var rules = sync.OnceValue(func() *ruleSet {
	s := &ruleSet{}
	if err := json.Unmarshal(rulesFile, s); err != nil {
		panic(err)
	}
	s.Allow.prepare()
	for _, r := range s.Rules {
		r.compiled, r.path, r.lines = lazyregexp.New(r.Regex), lazyregexp.New(r.Path), 2
		if strings.Contains(r.Regex, `[\s\S]`) || strings.Contains(r.Regex, `[\r\n]`) {
			r.lines = 6
		}
		for i := range r.Allow {
			r.Allow[i].prepare()
		}
		for _, k := range r.Keywords {
			at := pairAt(k, 0)
			s.byPair[at] = append(s.byPair[at], keyword{k, r})
		}
		if len(r.Keywords) == 0 {
			s.always = append(s.always, r)
		}
	}
	return s
})

// prepare makes the expressions ready to be compiled. Most of them never are.
func (e *exemption) prepare() {
	for _, expr := range e.Regexes {
		e.regexes = append(e.regexes, lazyregexp.New(expr))
	}
	for _, expr := range e.Files {
		e.files = append(e.files, lazyregexp.New(expr))
	}
}

func pairAt[T string | []byte](text T, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// matchesAny reports whether one of the expressions matches.
func matchesAny(all []func() *regexp.Regexp, text string) bool {
	return slices.ContainsFunc(all, func(re func() *regexp.Regexp) bool { return re().MatchString(text) })
}

// covers reports whether what a rule matches is no key.
func (e *exemption) covers(file, line, match, key string) bool {
	target := key
	switch e.Target {
	case "match":
		target = match
	case "line":
		target = line
	}
	lower := strings.ToLower(key)
	return matchesAny(e.files, file) || matchesAny(e.regexes, target) ||
		slices.ContainsFunc(e.Words, func(w string) bool { return strings.Contains(lower, w) })
}

// genericRule finds what is called a key, a token or a password, and looks random.
const genericRule = "generic-api-key"

// privateKeyRule finds private keys by their first line.
const privateKeyRule = "private-key"

// placeholders stand in keys of documentation and examples.
var placeholders = []string{"example", "placeholder", "changeme", "xxxx", "....", "****"}

// sumPattern fits what is random and no key: UUIDs, ids of commits, and checksums.
var sumPattern = lazyregexp.New(`(?i)^(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?:[0-9a-f]{40}|[0-9a-f]{64}|` +
	`[0-9a-f]{96}|[0-9a-f]{128})|(?:sha\d+|h1|md5)[-:=].*)$`)

// isKey reports whether what a rule matches is a key.
func (r *rule) isKey(file, line, match, key string) bool {
	lower := strings.ToLower(key)
	switch {
	case key == "", r.Entropy > 0 && entropy(key) <= r.Entropy,
		slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(lower, p) }),
		r.ID == genericRule && (sumPattern().MatchString(key) || !strings.ContainsAny(key, "0123456789")):
		return false
	}
	// What holds for all rules comes first: most of what is no key ends there.
	covers := func(e exemption) bool { return e.covers(file, line, match, key) }
	return !covers(rules().Allow) && !slices.ContainsFunc(r.Allow, covers)
}

// entropy returns how many bits each byte of a text has, by how often it occurs.
func entropy(text string) (bits float64) {
	var counts [256]float64
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			share := n / float64(len(text))
			bits -= share * math.Log2(share)
		}
	}
	return bits
}
