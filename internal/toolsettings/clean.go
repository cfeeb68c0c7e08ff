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

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"

	"muster/internal/redact"
)

// clean returns what is kept of a file of a format. isPart says that this is not all. ok is false where it cannot be
// read.
func clean(format string, kept []setting, data []byte) (_ []byte, isPart, ok bool) {
	c := &cleaner{kept: kept}
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
	case "versions":
		data = c.versions(string(data))
	case "lines", "ini":
		data = c.lines(string(data), format == "ini")
	}
	return data, c.isPart, err == nil
}

// cleaner keeps some settings of a file.
type cleaner struct {
	kept   []setting
	isPart bool // something was left out
}

// setting is the keys that lead to a setting. Each is a list of patterns.
type setting [][]string

// is reports whether keys lead to a setting that is kept.
func (c *cleaner) is(keys []string) bool {
	return slices.ContainsFunc(c.kept, func(s setting) bool { return len(s) == len(keys) && s.begins(keys) })
}

// leads reports whether settings that are kept may be below keys.
func (c *cleaner) leads(keys []string) bool {
	return slices.ContainsFunc(c.kept, func(s setting) bool { return len(s) > len(keys) && s.begins(keys) })
}

func (s setting) begins(keys []string) bool {
	for i, key := range keys {
		if !slices.ContainsFunc(s[i], func(pattern string) bool { return matches(pattern, key) }) {
			return false
		}
	}
	return true
}

// matches reports whether a key is that of a pattern, in which * stands for anything.
func matches(pattern, key string) bool {
	first, last, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return key == pattern
	}
	return len(key) >= len(first)+len(last) && strings.HasPrefix(key, first) && strings.HasSuffix(key, last)
}

func (c *cleaner) values(
	data []byte, read func([]byte, any) error, write func(any) ([]byte, error),
) ([]byte, error) {
	var all map[string]any
	if err := read(data, &all); err != nil {
		return nil, err
	}
	c.table(nil, all)
	return write(all)
}

func (c *cleaner) table(above []string, all map[string]any) {
	for key, v := range all {
		if kept, ok := c.value(append(slices.Clone(above), key), v); ok {
			all[key] = kept
		} else {
			delete(all, key)
		}
	}
}

// value returns what is kept of the value that keys lead to; ok is false where that is nothing.
func (c *cleaner) value(keys []string, v any) (kept any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		c.table(keys, v)
		return v, len(v) > 0
	case []map[string]any: // of TOML
		for _, inner := range v {
			c.table(keys, inner)
		}
		return v, c.leads(keys)
	case []any:
		all := v[:0]
		for _, inner := range v {
			if kept, ok := c.value(keys, inner); ok {
				all = append(all, kept)
			}
		}
		return all, len(all) > 0
	case string:
		return c.text(c.is(keys), v)
	}
	isKept := c.is(keys)
	c.isPart = c.isPart || !isKept
	return v, isKept
}

// text returns what is kept of a text.
func (c *cleaner) text(isKept bool, v string) (text string, ok bool) {
	if isKept {
		text, ok = withoutUser(v)
	}
	c.isPart = c.isPart || text != v
	return text, ok
}

// lines returns a file whose lines are a key and a value, and sections. In the format of pip, lines that are indented
// more than that of a key belong to its value.
func (c *cleaner) lines(text string, continues bool) []byte {
	var out strings.Builder
	isKept, depth := false, -1 // of the last key
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		key, value, ok := cutSetting(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";"):
			continue
		case strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]"):
			out.WriteString(line)
			depth = -1
			continue
		case continues && depth >= 0 && indent > depth:
			value = line
		case ok:
			isKept, depth = c.is([]string{key}) || c.is([]string{strings.ReplaceAll(key, "_", "-")}), indent
		default:
			isKept, depth = c.is([]string{trimmed}), indent
		}
		if kept, ok := c.text(isKept, value); ok {
			out.WriteString(line[:len(line)-len(value)] + kept)
		}
	}
	return []byte(out.String())
}

// cutSetting cuts a line such as "key = value", "key: value" or "key value". Before the key of npm may stand a scope.
func cutSetting(line string) (key, value string, ok bool) {
	whole := line
	line = strings.TrimLeft(line, " \t")
	at := strings.IndexAny(strings.TrimRight(line, " \t\r\n"), "= \t")
	if colon := strings.Index(line, ": "); colon >= 0 && (at < 0 || colon < at) {
		at = colon
	}
	if at < 1 {
		return "", whole, false
	}
	value = line[at+1:]
	if rest := strings.TrimLeft(value, " \t"); strings.HasPrefix(rest, "=") && line[at] != '=' { // key = value
		value = rest[1:]
	}
	key = strings.Trim(line[:at], " \t\"'")
	return key, value, key != ""
}

// versions returns a file that has a version, or a tool and its versions, in each line.
func (c *cleaner) versions(text string) []byte {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if version.MatchString(strings.TrimSpace(line)) {
			out.WriteString(line)
		} else if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			c.isPart = true
		}
	}
	return []byte(out.String())
}

// xml returns a file with the elements that are kept, and of their attributes key, value, pattern and those of xmlns.
func (c *cleaner) xml(data []byte) ([]byte, error) {
	var out bytes.Buffer
	d, e := xml.NewDecoder(bytes.NewReader(data)), xml.NewEncoder(&out)
	var path []string
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
			path = append(path, t.Name.Local)
			if !c.is(path) && !c.leads(path) {
				c.isPart = true
				if err := skip(d); err != nil {
					return nil, err
				}
				path = path[:len(path)-1]
				continue
			}
			attributes := t.Attr[:0]
			for _, a := range t.Attr {
				isOfFile := a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == "xsi"
				isKept := isOfFile || c.is(path) && slices.Contains([]string{"key", "value", "pattern"}, a.Name.Local)
				if value, ok := c.text(isKept, a.Value); ok {
					attributes = append(attributes, xml.Attr{Name: rawName(a.Name), Value: value})
				}
			}
			t.Attr, t.Name = attributes, rawName(t.Name)
			token = t
		case xml.EndElement:
			path = path[:max(len(path)-1, 0)]
			t.Name = rawName(t.Name)
			token = t
		case xml.CharData:
			isBlank := strings.TrimSpace(string(t)) == ""
			kept, ok := c.text(isBlank || c.is(path), string(t))
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

var (
	urlUser    = regexp.MustCompile(`(://|^\s*["']?)[^/\s]*@`) // to the last @ before the path
	condaToken = regexp.MustCompile(`(://[^\s"']*?)/t/[^/\s"']+`)
	version    = regexp.MustCompile(`^[A-Za-z0-9 .@/+:*~^<>=_-]{1,80}$`)
	// known are the forms of widespread tokens.
	known = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|npm_|glpat-|pypi-|AKC|AKIA|AIza|xox[abp]-|sk-|hf_)` +
		`[A-Za-z0-9_-]{16,}`)
	// pieces are the parts of an address that may be a token.
	pieces = regexp.MustCompile(`[A-Za-z0-9]{16,}`)
)

// withoutUser returns a value without the user and the token of a URL; ok is false where it may have a secret all the
// same, such as letters mixed with digits in an address.
func withoutUser(v string) (_ string, ok bool) {
	trimmed := strings.TrimSpace(v)
	kept := condaToken.ReplaceAllString(urlUser.ReplaceAllString(trimmed, "$1"), "$1")
	if known.MatchString(kept) || strings.Contains(kept, "PRIVATE KEY") || len(redact.InText(kept)) > 0 {
		return "", false
	}
	if _, address, ok := strings.Cut(kept, "://"); ok {
		for _, piece := range pieces.FindAllString(address, -1) {
			if strings.ContainsAny(piece, "0123456789") && strings.Trim(piece, "0123456789") != "" {
				return "", false
			}
		}
	}
	at := strings.Index(v, trimmed)
	return v[:at] + kept + v[at+len(trimmed):], true
}
