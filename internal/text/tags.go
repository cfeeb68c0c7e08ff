package text

import "muster/internal/lazyregexp"

// tagPattern matches the start of anything that a model could take for a tag of the runtime, opening or closing.
var tagPattern = lazyregexp.New(`(?i)<(` + invisible + `/?` + invisible +
	`(?:mail|auto-claimed|reminder|background-results|hook|skill|role|identity|environment|instructions|memories|` +
	`material))`)

// invisible matches characters that are not seen, or hardly.
const invisible = `[\s\v\x{85}\pZ\p{Cf}]*`

// EscapeTags makes s unable to open or close a tag of the runtime, such as <mail>. All text that others wrote goes
// through it before it stands between tags. Escaping twice changes nothing more.
func EscapeTags(s string) string { return tagPattern().ReplaceAllString(s, "&lt;$1") }
