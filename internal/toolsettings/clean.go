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

// What is kept of a file is named here, and all else is left out: credentials have too many names.

// kept are the keys whose values are kept: where packages come from, how a server is reached, and how builds go. They
// are in small letters, with dashes for other signs.
var kept = regexp.MustCompile(`^(` + strings.Join([]string{
	`registry`, `.*-registry`, `npmregistryserver`, `unsafehttpwhitelist`, `enablestrictssl`, // of npm, yarn
	`nodelinker`,
	`strict-ssl`, `always-auth`, `save-exact`, `save-prefix`, `package-lock`, `legacy-peer-deps`, `engine-strict`,
	`node-linker`, `shamefully-hoist`, `auto-install-peers`, `fund`, `audit`,
	`index-url`, `extra-index-url`, `index`, `default-index`, `find-links`, `no-index`, `trusted-host`, // of pip, uv
	`index-strategy`, `prerelease`, `python-preference`, `resolution`, `only-binary`, `no-binary`, `require-virtualenv`,
	`replace-with`, `default`, `protocol`, `git-fetch-with-cli`, `offline`, `jobs`, `rustflags`, `linker`, // of cargo
	`target`, `incremental`, `opt-level`, `debug`, `lto`,
	`channels`, `default-channels`, `channel-alias`, `channel-priority`, `ssl-verify`, // of conda
	`url`, `urls`, `name`, `type`, `mirror`, `mirrors`, `bundle-mirror-.*`, `sources`, `packagist-org`, `resolver`,
	`location`, `explicit`, `format`,
	`go[a-z0-9]*`, `cgo-.*`, // of go
	`org-gradle-(parallel|caching|daemon|configureondemand|configuration-cache|java-home|workers-max)`,
	`android-(use|enable)[a-z]*`, `kotlin-.*`,
	`proxy`, `.*-proxy`, `http-proxyhost`, `systemprop-https?-(proxyhost|proxyport|nonproxyhosts)`, `no-?proxy`,
	`cafile`, `cainfo`, `ca-bundle`, `cert`, `timeout`, `.*-timeout`, `retr(y|ies)`, `legacy-version-file`,
}, `|`) + `)$`)

// keptElements are the elements of XML that are kept, with their attributes key, value, pattern and those of xmlns.
var keptElements = strings.Fields(`settings localRepository interactiveMode offline pluginGroups pluginGroup mirrors
	mirror id name url mirrorOf layout blocked profiles profile activation activeByDefault activeProfiles activeProfile
	repositories repository pluginRepositories pluginRepository releases snapshots enabled updatePolicy checksumPolicy
	proxies proxy active protocol host port nonProxyHosts toolchains toolchain type provides version vendor jdkHome
	configuration packageSources add clear disabledPackageSources packageSourceMapping packageSource package`)

// clean returns what is kept of a file. isPart says that this is not all. ok is false where it cannot be read.
func clean(format string, data []byte) (_ []byte, isPart, ok bool) {
	c := &cleaner{keeps: func(key, _ string) bool { return isKept(key) }}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var err error
	switch format {
	case "mise":
		c.keeps = func(_, value string) bool { return version.MatchString(value) }
		data, err = c.values(data, toml.Unmarshal, func(all any) ([]byte, error) {
			tools := all.(map[string]any)["tools"]
			c.isPart = c.isPart || tools == nil || len(all.(map[string]any)) > 1
			return toml.Marshal(map[string]any{"tools": tools})
		})
	case "toml":
		data, err = c.values(data, toml.Unmarshal, toml.Marshal)
	case "yaml":
		data, err = c.values(data, yaml.Unmarshal, yaml.Marshal)
	case "json":
		data, err = c.values(data, json.Unmarshal, json.Marshal)
	case "xml":
		data, err = c.xml(data)
	case "urls":
		c.keeps = func(string, string) bool { return true }
		data = c.lines(string(data))
	case "versions":
		data = c.versions(string(data))
	default:
		data = c.lines(string(data))
	}
	return data, c.isPart, err == nil
}

// cleaner takes from a file what keeps says of a key and its value, which is "" where it is no text.
type cleaner struct {
	keeps  func(key, value string) bool
	isPart bool // something was left out
}

func (c *cleaner) values(
	data []byte, read func([]byte, any) error, write func(any) ([]byte, error),
) ([]byte, error) {
	var all map[string]any
	if err := read(data, &all); err != nil {
		return nil, err
	}
	c.table(all)
	return write(all)
}

func (c *cleaner) table(all map[string]any) {
	for key, v := range all {
		if kept, ok := c.value(key, v); ok {
			all[key] = kept
		} else {
			delete(all, key)
		}
	}
}

// value returns what is kept of the value of a key; ok is false where that is nothing.
func (c *cleaner) value(key string, v any) (kept any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		c.table(v)
		return v, len(v) > 0
	case []map[string]any: // of TOML
		for _, inner := range v {
			c.table(inner)
		}
		return v, true
	case []any:
		all := v[:0]
		for _, inner := range v {
			if kept, ok := c.value(key, inner); ok {
				all = append(all, kept)
			}
		}
		return all, len(all) > 0
	case string:
		return c.text(key, v)
	}
	isKept := c.keeps(key, "")
	c.isPart = c.isPart || !isKept
	return v, isKept
}

// text returns what is kept of the text that a key has.
func (c *cleaner) text(key, v string) (text string, ok bool) {
	if c.keeps(key, v) {
		text, ok = withoutUser(v)
	}
	c.isPart = c.isPart || text != v
	return text, ok
}

// lines returns a file whose lines are a key and a value, sections, and values that belong to the key above.
func (c *cleaner) lines(text string) []byte {
	var out strings.Builder
	key := "" // of the lines that begin with blanks
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		name, value, hasKey := cutSetting(line)
		isMore := line != strings.TrimLeft(line, " \t") && key != ""
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";"):
			continue
		case strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]"):
			key = ""
			out.WriteString(line)
			continue
		case isMore && (!hasKey || strings.Contains(trimmed, "://")):
			name, value = key, line
		case hasKey:
			key = name
		}
		if !hasKey && !isMore {
			name = trimmed
		}
		if kept, ok := c.text(name, value); ok {
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

// xml returns a file with the elements that are kept.
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
			if !slices.Contains(keptElements, t.Name.Local) {
				c.isPart = true
				if err := skip(d); err != nil {
					return nil, err
				}
				continue
			}
			attributes := t.Attr[:0]
			for _, a := range t.Attr {
				isOfFile := a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == "xsi"
				value, ok := withoutUser(a.Value)
				if ok && (isOfFile || slices.Contains([]string{"key", "value", "pattern"}, a.Name.Local)) {
					attributes = append(attributes, xml.Attr{Name: rawName(a.Name), Value: value})
				}
			}
			t.Attr, t.Name = attributes, rawName(t.Name)
			token = t
		case xml.EndElement:
			t.Name = rawName(t.Name)
			token = t
		case xml.CharData:
			kept, ok := withoutUser(string(t))
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
	urlUser    = regexp.MustCompile(`(://|^\s*["']?)[^/\s"'@]*@`)
	condaToken = regexp.MustCompile(`/t/[^/\s"']+`)
	version    = regexp.MustCompile(`^[A-Za-z0-9 .@/+:*~^<>=_-]{1,80}$`)
	// known are the forms of widespread tokens.
	known = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|npm_|glpat-|pypi-|AKC|AKIA|xox[abp]-|sk-|hf_)` +
		`[A-Za-z0-9_-]{16,}`)
)

// withoutUser returns a value without the user and the token of a URL; ok is false where it has a secret all the same.
func withoutUser(v string) (_ string, ok bool) {
	v = condaToken.ReplaceAllString(urlUser.ReplaceAllString(v, "$1"), "")
	return v, !known.MatchString(v) && !strings.Contains(v, "PRIVATE KEY") && len(redact.InText(v)) == 0
}

// isKept reports whether the value of a key is kept. The keys of npm may have a scope or a host before them: those of a
// host are credentials, but for its certificates.
func isKept(key string) bool {
	if at := strings.LastIndexByte(key, ':'); at >= 0 {
		if strings.HasPrefix(key, ":") { // of Ruby
			key = key[1:]
		} else if !strings.HasPrefix(key, "@") && !strings.HasPrefix(key, "BUNDLE_") {
			return false
		} else if key[0] == '@' {
			key = key[at+1:]
		}
	}
	if key == "GOAUTH" { // a command
		return false
	}
	return kept.MatchString(strings.ToLower(strings.NewReplacer("_", "-", ".", "-", " ", "-").Replace(key)))
}
