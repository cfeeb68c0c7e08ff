package toolsettings

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"

	"muster/internal/redact"
)

// clean returns a file without its credentials, and how many there were. ok is false where that is not possible.
func clean(format string, data []byte) (_ []byte, leftOut int, ok bool) {
	c := &cleaner{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var err error
	switch format {
	case "toml":
		data, err = c.values(data, toml.Unmarshal, toml.Marshal)
	case "yaml":
		data, err = c.values(data, yaml.Unmarshal, yaml.Marshal)
	case "json":
		data, err = c.values(data, json.Unmarshal, json.Marshal)
	case "xml":
		data, err = c.xml(data)
	case "code":
		if hasCredential(string(data)) {
			err = errors.New("a program with a credential")
		}
	default:
		data = c.lines(string(data))
	}
	return data, c.n, err == nil
}

// cleaner counts what it leaves out.
type cleaner struct{ n int }

func (c *cleaner) values(
	data []byte, read func([]byte, any) error, write func(any) ([]byte, error),
) ([]byte, error) {
	var all map[string]any
	if err := read(data, &all); err != nil {
		return nil, err
	}
	for key, v := range all {
		if kept, ok := c.value(key, v); ok {
			all[key] = kept
		} else {
			delete(all, key)
		}
	}
	return write(all)
}

// value returns what is kept of the value of a key; ok is false where that is nothing.
func (c *cleaner) value(key string, v any) (kept any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if kept, ok := c.value(key, inner); ok {
				v[key] = kept
			} else {
				delete(v, key)
			}
		}
	case []map[string]any: // of TOML
		for _, inner := range v {
			_, _ = c.value(key, inner)
		}
	case []any:
		all := v[:0]
		for _, inner := range v {
			if kept, ok := c.value(key, inner); ok {
				all = append(all, kept)
			}
		}
		return all, true
	case string:
		return c.text(key, v)
	}
	return v, true
}

// text returns what is kept of the text that a key has.
func (c *cleaner) text(key, v string) (kept string, ok bool) {
	kept = urlUser.ReplaceAllString(v, "://")
	kept = condaToken.ReplaceAllString(kept, "/")
	if kept != v {
		c.n++
	}
	isURL := strings.Contains(v, "://")
	if !isURL && isCredential(key) && !isWord(v) || hasCredential(kept) {
		c.n++
		return "", false
	}
	return kept, true
}

// lines returns a file whose lines are a key and a value, or a value alone.
func (c *cleaner) lines(text string) []byte {
	var kept strings.Builder
	isKey := false // in a private key
	for line := range strings.Lines(text) {
		isKey = isKey || strings.Contains(line, "-----BEGIN")
		switch key, value, hasKey := cutSetting(line); {
		case isKey:
			isKey = !strings.Contains(line, "-----END")
			c.n++
		case isComment(line):
		case !hasKey:
			if v, ok := c.text("", line); ok {
				kept.WriteString(v)
			}
		default:
			if v, ok := c.text(key, value); ok && !hasCredential(line[:len(line)-len(value)]+v) {
				kept.WriteString(line[:len(line)-len(value)] + v)
			}
		}
	}
	return []byte(kept.String())
}

func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") || strings.HasPrefix(line, "--")
}

// cutSetting cuts a line such as "key = value" or "key: value". The keys of npm may have a host before them.
func cutSetting(line string) (key, value string, ok bool) {
	at := strings.IndexByte(line, '=')
	if colon := strings.Index(line, ": "); colon >= 0 && (at < 0 || colon < at) {
		at = colon
	}
	if at < 0 {
		return "", line, false
	}
	return strings.Trim(line[:at], " \t\"'"), line[at+1:], true
}

// xml returns a file without the elements and attributes that name a credential.
func (c *cleaner) xml(data []byte) ([]byte, error) {
	var out bytes.Buffer
	d, e := xml.NewDecoder(bytes.NewReader(data)), xml.NewEncoder(&out)
	for {
		token, err := d.RawToken()
		switch {
		case errors.Is(err, io.EOF):
			err := e.Close() // it says what is still open
			return out.Bytes(), err
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			isNamed := func(a xml.Attr) bool { return a.Name.Local == "key" && isCredential(a.Value) } // of NuGet
			if isCredential(t.Name.Local) || slices.Contains(xmlSecrets, t.Name.Local) ||
				slices.ContainsFunc(t.Attr, isNamed) {
				c.n++
				if err := skip(d); err != nil {
					return nil, err
				}
				continue
			}
			t.Attr = slices.DeleteFunc(t.Attr, func(a xml.Attr) bool {
				_, ok := c.text(a.Name.Local, a.Value)
				return !ok && a.Name.Local != "key"
			})
			for i := range t.Attr {
				t.Attr[i].Value, _ = c.text("", t.Attr[i].Value)
				t.Attr[i].Name = rawName(t.Attr[i].Name)
			}
			t.Name = rawName(t.Name)
			token = t
		case xml.EndElement:
			t.Name = rawName(t.Name)
			token = t
		case xml.CharData:
			kept, ok := c.text("", string(t))
			if token = xml.CharData(kept); !ok {
				continue
			}
		case xml.Comment:
			continue
		}
		if err := e.EncodeToken(token); err != nil {
			return nil, err
		}
	}
}

// rawName returns a name with its prefix as it was written.
func rawName(n xml.Name) xml.Name {
	if n.Space != "" {
		n.Local = n.Space + ":" + n.Local
	}
	return xml.Name{Local: n.Local}
}

// skip reads to the end of an element.
func skip(d *xml.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := d.RawToken()
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// xmlSecrets are elements that have credentials of Maven and NuGet, whatever theirs are named.
var xmlSecrets = []string{"servers", "packageSourceCredentials", "apikeys", "privateKey", "clientCertificates"}

var (
	urlUser    = regexp.MustCompile(`://[^/\s"'@]*@`)
	condaToken = regexp.MustCompile(`/t/[^/\s]+/`)
	private    = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`)
	// given is a name of a credential, with its value.
	given = regexp.MustCompile(`(?i)(token|secret|password|passwd|passphrase|_auth|authident|api_?key|access_?key)` +
		`[\w.-]*["']?\s*[=:(]?\s*["'][^"'$]+["']`)
	// known are the forms of widespread tokens.
	known = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|npm_|glpat-|pypi-|AKC|AKIA|xox[abp]-|sk-|hf_)` +
		`[A-Za-z0-9_-]{16,}`)
)

// hasCredential reports whether a text gives a value to what has the name of a credential, or has a known token in it.
func hasCredential(text string) bool {
	return private.MatchString(text) || given.MatchString(text) || known.MatchString(text) ||
		len(redact.InText(text)) > 0
}

// isCredential reports whether a key of a file is that of a credential. Many are written like npmAuthToken.
func isCredential(key string) bool {
	if at := strings.LastIndexAny(key, ":/"); at >= 0 { // of a host of npm's
		key = key[at+1:]
	}
	var words strings.Builder
	for i, r := range key {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(key[i-1])) {
			words.WriteByte('_')
		}
		words.WriteRune(r)
	}
	name := words.String()
	return redact.IsCredential(name) && !strings.HasPrefix(strings.ToLower(name), "bundle_mirror")
}

// isWord reports whether a value is that of a switch, and no credential.
func isWord(v string) bool {
	return slices.Contains([]string{"", "true", "false", "legacy", "web", "subprocess", "disabled"},
		strings.ToLower(strings.Trim(v, " \t\r\n\"'")))
}
