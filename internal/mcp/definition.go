package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/redact"
	"muster/internal/text"
)

// The limits of what is read of definitions.
const (
	maxServers     = 64
	maxServerName  = 64 // bytes
	defaultTimeout = 2 * time.Minute
)

// Server is a server as a file defines it.
type Server struct {
	Name string
	File string // where it is defined, as people read it
	// Text is the definition as people see it and as the user trusts it: of the environment it has names only.
	Text string

	Command []string          // of a server over stdio: the program and its arguments
	Env     map[string]string // of the program, beside what all commands of agents see
	URL     string            // of a server over HTTP
	Header  map[string]string

	Tools, Exclude []string      // patterns of the names of its tools that are offered, and that are not; no Tools: all
	Timeout        time.Duration // of a call; 0: two minutes

	// Problem says why the server cannot be used; "": it can.
	Problem string

	secrets []string
}

// Transport is how the server is reached, in a word.
func (s Server) Transport() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// Secrets returns the values in a definition that must never be shown.
func (s Server) Secrets() []string { return s.secrets }

// fields are the fields of a definition. Other programs write more of them, which say nothing that counts here.
type fields struct {
	Type          string          `json:"type"`
	Transport     string          `json:"transport"`
	Command       string          `json:"command"`
	Args          []word          `json:"args"`
	Env           map[string]word `json:"env"`
	URL           string          `json:"url"`
	Headers       map[string]word `json:"headers"`
	Tools         []string        `json:"tools"`
	Exclude       []string        `json:"exclude"`
	Timeout       json.RawMessage `json:"timeout"`
	Disabled      bool            `json:"disabled"`
	HeadersHelper string          `json:"headersHelper"`
}

// word is a string that people also write as a number or a boolean.
type word string

// UnmarshalJSON reads a scalar.
func (t *word) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	if len(data) > 0 && strings.ContainsRune("{[n", rune(data[0])) {
		return fmt.Errorf("a text is expected in place of %s", text.CutBytes(string(data), 40))
	}
	*t = word(data)
	return nil
}

// ParseFile returns the servers of a file .mcp.json, in the order of their names. lookup returns variables of the
// environment. The error is Invalid for a file that is no such file; a wrong definition is a Problem of its server.
func ParseFile(file string, data []byte, lookup func(name string) (string, bool)) ([]Server, error) {
	var content struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(muster.TrimBOM(data), &content); err != nil {
		return nil, muster.Errorf(muster.Invalid, "%s cannot be read: %w", file, err)
	}
	if len(content.Servers) > maxServers {
		return nil, muster.Errorf(muster.Invalid, "%s has more than %d servers", file, maxServers)
	}
	var all []Server
	for _, name := range slices.Sorted(maps.Keys(content.Servers)) {
		all = append(all, Parse(name, file, content.Servers[name], false, lookup))
	}
	return all, nil
}

// Parse returns the server of a definition in JSON. isOurs says that it was written for muster: then every field must
// be known, and a time limit that is a number is one of seconds. In files for other programs it is one of milliseconds.
func Parse(name, file string, definition []byte, isOurs bool, lookup func(string) (string, bool)) Server {
	s, unit := Server{Name: name, File: file, Text: canonical(definition)}, time.Millisecond
	d := json.NewDecoder(bytes.NewReader(definition))
	if isOurs {
		d.DisallowUnknownFields()
		unit = time.Second
	}
	var f fields
	if err := d.Decode(&f); err != nil {
		s.Problem = "its definition cannot be read: " + strings.TrimPrefix(err.Error(), "json: ")
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			s.Problem = fmt.Sprintf("the value of %s in its definition is of a wrong kind (%s)",
				cmp.Or(e.Field, "the whole"), e.Value)
		}
		return s
	}
	x := expander{lookup: lookup}
	if f.Command != "" {
		s.Command = []string{x.expand(f.Command)}
		for _, arg := range f.Args {
			s.Command = append(s.Command, x.expand(string(arg)))
		}
		s.secrets = redact.InText(strings.Join(s.Command, " "))
	}
	s.Env = map[string]string{}
	for key, value := range f.Env {
		s.Env[key] = x.expand(string(value))
		s.secrets = append(s.secrets, redact.FromEnviron([]string{key + "=" + s.Env[key]})...)
	}
	s.Header = map[string]string{}
	for key, value := range f.Headers {
		s.Header[key] = x.expand(string(value))
		secret := redact.InHeader(key, s.Header[key])
		if secret == nil && s.Header[key] != string(value) {
			secret = []string{s.Header[key]} // whoever takes it from the environment does not want to show it
		}
		s.secrets = append(s.secrets, secret...)
	}
	s.URL, s.Tools, s.Exclude = x.expand(f.URL), f.Tools, f.Exclude
	s.secrets = append(s.secrets, redact.InURLs(s.URL)...)
	s.Timeout = timeout(f.Timeout, unit)
	s.Problem = cmp.Or(s.problem(f), x.problem())
	return s
}

// problem returns why a definition cannot be used.
func (s Server) problem(f fields) string {
	kind := strings.ToLower(cmp.Or(f.Type, f.Transport))
	u, err := url.Parse(s.URL)
	switch {
	case s.Name == "" || len(s.Name) > maxServerName:
		return fmt.Sprintf("a name has 1 to %d bytes", maxServerName)
	case f.Disabled:
		return "its definition says that it is disabled"
	case kind == "sse":
		return "the transport sse is not supported: most such servers have streamable HTTP too (type: http)"
	case f.HeadersHelper != "":
		return "headersHelper is not supported: take the value from the environment, as in ${TOKEN}"
	case len(s.Command) > 0 && s.URL != "":
		return "it has a command and a URL, and can have only one of them"
	case len(s.Command) == 0 && s.URL == "":
		return "it has neither a command nor a URL"
	case s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"):
		return "its URL is not one of http or https"
	case s.Timeout < 0:
		return "its time limit is not a duration such as 30s"
	}
	return ""
}

// timeout returns a time limit, which is a number or a text; below zero: it is neither.
func timeout(value json.RawMessage, unit time.Duration) time.Duration {
	var n float64
	var words string
	switch {
	case len(value) == 0 || string(value) == "null":
		return defaultTimeout
	case json.Unmarshal(value, &n) == nil && n > 0 && n < 1e9:
		return time.Duration(n * float64(unit))
	case json.Unmarshal(value, &words) == nil:
		if d, err := time.ParseDuration(words); err == nil && d > 0 {
			return d
		}
	}
	return -1
}

// canonical returns a definition in one form, whatever the order of its fields and its blanks.
func canonical(definition []byte) string {
	d := json.NewDecoder(bytes.NewReader(definition))
	d.UseNumber()
	var v any
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if d.Decode(&v) != nil || e.Encode(v) != nil {
		return string(definition)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// variable matches a variable of the environment in a definition.
var variable = lazyregexp.New(`\$\{[A-Za-z_]\w*(:-[^}]*)?\}`)

// expander puts variables of the environment in place of ${NAME} and ${NAME:-default}.
type expander struct {
	lookup  func(string) (string, bool)
	missing []string
}

// expand returns a text with the values of its variables.
func (x *expander) expand(s string) string {
	return variable().ReplaceAllStringFunc(s, func(found string) string {
		name, standard, hasDefault := strings.Cut(found[2:len(found)-1], ":-")
		value, isSet := x.lookup(name)
		if isSet {
			return value
		}
		if !hasDefault && !slices.Contains(x.missing, name) {
			x.missing = append(x.missing, name)
		}
		return standard
	})
}

// problem says which variables are not set.
func (x *expander) problem() string {
	if len(x.missing) == 0 {
		return ""
	}
	slices.Sort(x.missing)
	return "your environment does not set " + strings.Join(x.missing, ", ")
}
