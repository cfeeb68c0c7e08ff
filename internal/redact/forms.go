package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// forms returns a secret in the forms in which programs write it.
func forms(v string) (all []string) {
	if strings.HasPrefix(v, "eyJ") && strings.Count(v, ".") == 2 {
		_, v, _ = strings.Cut(v, ".") // the head of a JWT is also that of others
	}
	if !strings.ContainsAny(v, "\n\r") && !strings.HasPrefix(v, "{") && !strings.HasPrefix(v, "-----BEGIN") {
		return encodings(v)
	}
	// Of a document, such as a private key or the file of a service account, only what looks random is secret: its
	// other words stand in other documents too.
	isBetween := func(r rune) bool { return strings.ContainsRune(" \t\r\n\\\"'{}[],;", r) }
	for _, field := range strings.FieldsFunc(v, isBetween) {
		if len(field) >= minPiece && strings.ContainsAny(field, "0123456789") && !strings.Contains(field, "://") {
			all = append(all, encodings(field)...)
		}
	}
	return all
}

// encodings returns a text as it is, and as programs print or quote it: in URLs, JSON and HTML, in hex, base64 and
// base32, in one case, and back to front.
func encodings(v string) []string {
	inHex, quoted, escaped := hex.EncodeToString([]byte(v)), inJSON(v), url.QueryEscape(v)
	html5, _ := json.Marshal(v) // as a record has it; a string can be encoded
	all := []string{v, escaped, url.PathEscape(v), quoted, strings.Trim(string(html5), `"`), inJSON(quoted),
		strings.ReplaceAll(quoted, "/", `\/`), strings.Trim(strconv.QuoteToASCII(v), `"`), html.EscapeString(v),
		strings.ToLower(v), strings.ToUpper(v), inHex, strings.ToUpper(inHex),
		base32.StdEncoding.EncodeToString([]byte(v)),
		inGroups(inHex, 2, 0), inGroups(inHex, 4, 0), inGroups(inHex, 4, 2)} // the last three by od, hexdump and xxd
	if escaped != v { // some write the digits of an escape in small letters
		all = append(all, strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3A", "%3a", "%3D", "%3d").Replace(escaped))
	}
	if backwards := []byte(v); len(v) >= minPiece {
		slices.Reverse(backwards)
		all = append(all, string(backwards))
	}
	// In base64 a text looks different at each of three places. The characters at either end that depend on what
	// stands beside it are left out.
	for before, from := range []int{0, 2, 3} {
		padded := append(make([]byte, before), v...)
		code := base64.StdEncoding.EncodeToString(padded)[from : len(padded)/3*4+len(padded)%3]
		all = append(all, code, strings.NewReplacer("+", "-", "/", "_").Replace(code))
	}
	return all
}

// inJSON returns a text as it stands in a string of JSON, without the escapes that are only for HTML.
func inJSON(v string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string can be encoded
	return strings.TrimSuffix(strings.TrimPrefix(out.String(), `"`), "\"\n")
}

// inGroups returns hex digits in groups of n, the first group of which has lead digits if that is not zero.
func inGroups(digits string, n, lead int) string {
	groups := []string{digits[:lead]}
	for group := range slices.Chunk([]byte(digits[lead:]), n) {
		groups = append(groups, string(group))
	}
	return strings.TrimSpace(strings.Join(groups, " "))
}
