package text

import "muster/internal/lazyregexp"

// tagNames are the names of the tags of the runtime.
const tagNames = `(?:mail|auto-claimed|reminder|background-results|hook|skill|role|identity|environment|instructions|` +
	`memories|material|team-rules)`

// tagPattern matches the start of anything that a model could take for a tag of the runtime, opening or closing.
var tagPattern = lazyregexp.New(`(?i)<(` + invisible + `/?` + invisible + tagNames + `)`)

// ownTags matches tags as the runtime itself writes them, and escapedTag what EscapeTags has made of others.
var (
	ownTags    = lazyregexp.New(`</?` + tagNames + `(?: [^<>\n]*)?>\n?`)
	escapedTag = lazyregexp.New(`(?i)&lt;(` + invisible + `/?` + invisible + tagNames + `)`)
)

// invisible matches characters that are not seen, or hardly.
const invisible = `[\s\v\x{85}\pZ\p{Cf}]*`

// EscapeTags makes s unable to open or close a tag of the runtime, such as <mail>. All text that others wrote goes
// through it before it stands between tags. Escaping twice changes nothing more.
func EscapeTags(s string) string { return tagPattern().ReplaceAllString(s, "&lt;$1") }

// WithoutTags returns what a model was told as people read it: without the tags of the runtime, and with what looks
// like one in the words of others as it was.
func WithoutTags(s string) string {
	return escapedTag().ReplaceAllString(ownTags().ReplaceAllString(s, ""), "<$1")
}
