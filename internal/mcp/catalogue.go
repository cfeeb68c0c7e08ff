package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/internal/durable"
	"muster/internal/text"
)

// The limits of what a server may list.
const (
	maxTools       = 512
	maxPrompts     = 100
	maxListed      = 32 << 10 // entries of a list that are looked at
	maxDescription = 1024     // bytes
	maxSchema      = 16 << 10 // bytes of the schema of a tool's input; a tool with a longer one is left out
	maxDepth       = 32       // of what lies in a schema
	maxCatalogue   = 12 << 20 // bytes of a file
)

// catalogue is what a server has. It is stored, so its fields only ever grow.
type catalogue struct {
	Tools     []Tool   `json:"tools"`
	Prompts   []Prompt `json:"prompts,omitempty"`
	Resources bool     `json:"resources,omitempty"`
	// LeftOut is how many tools of the server are not in Tools because they are too many or too large.
	LeftOut int `json:"left_out,omitempty"`
}

// Tool is a tool as a server describes it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	ReadOnly    bool            `json:"read_only,omitempty"` // as the server says
	// Renamed has the real names of properties by those that they have in Schema, where these differ.
	Renamed map[string]string `json:"renamed,omitempty"`
}

// Prompt is a text that a server has for people to begin with.
type Prompt struct {
	Server      string     `json:"server"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Arguments   []Argument `json:"arguments,omitempty"`
}

// Argument is an argument of a prompt.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
}

// list asks a server for what it has. What does not fit the limits is left out.
func (x *session) list(ctx context.Context, s Server) (*catalogue, error) {
	c, has := &catalogue{}, x.InitializeResult().Capabilities
	if has == nil {
		return c, nil
	}
	c.Resources = has.Resources != nil
	if has.Tools != nil {
		all, err := collect(x.Tools(ctx, nil))
		if err != nil {
			return nil, err
		}
		c.addTools(all, s)
	}
	if has.Prompts != nil {
		all, _ := collect(x.Prompts(ctx, nil)) // a server without its prompts is of use too
		c.addPrompts(all, s.Name)
	}
	return c, nil
}

// collect returns the first entries of a list, of which a server may send endlessly many.
func collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range list {
		if err != nil {
			return all, err
		}
		if all = append(all, x); len(all) == maxListed {
			break
		}
	}
	return all, nil
}

// addTools adds the tools that a definition lets through, in the order of their names.
func (c *catalogue) addTools(all []*sdk.Tool, s Server) {
	seen := map[string]bool{}
	slices.SortStableFunc(all, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range all {
		matches := func(pattern string) bool { ok, err := path.Match(pattern, t.Name); return ok && err == nil }
		isOffered := len(s.Tools) == 0 || slices.ContainsFunc(s.Tools, matches)
		if !isOffered || slices.ContainsFunc(s.Exclude, matches) || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		schema, renamed, ok := offered(t.InputSchema)
		if !ok || len(t.Name) > 256 || len(c.Tools) == maxTools {
			c.LeftOut++
			continue
		}
		c.Tools = append(c.Tools, Tool{Name: t.Name, Description: foreign(t.Description, maxDescription),
			Schema: schema, Renamed: renamed, ReadOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint})
	}
}

// addPrompts adds prompts in the order of their names.
func (c *catalogue) addPrompts(all []*sdk.Prompt, server string) {
	slices.SortStableFunc(all, func(a, b *sdk.Prompt) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range all[:min(len(all), maxPrompts)] {
		x := Prompt{Server: server, Name: p.Name, Description: foreign(p.Description, maxDescription)}
		for _, a := range p.Arguments[:min(len(p.Arguments), maxPrompts)] {
			x.Arguments = append(x.Arguments, Argument{a.Name, foreign(a.Description, maxDescription), a.Required})
		}
		c.Prompts = append(c.Prompts, x)
	}
}

// foreign returns a text of a server as it is stored and shown: bounded, and without what could steer a terminal or
// pass for a mark of the runtime.
func foreign(s string, most int) string {
	return text.EscapeTags(text.CutBytes(strings.TrimSpace(text.Clean(s)), most))
}

// clean returns a value of JSON whose texts are foreign ones. What lies too deep is left out.
func clean(v any, depth int) any {
	switch v := v.(type) {
	case string:
		return foreign(v, maxDescription)
	case []any:
		list := []any{}
		for _, item := range v {
			if depth < maxDepth {
				list = append(list, clean(item, depth+1))
			}
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, value := range v {
			if depth < maxDepth {
				object[foreign(key, maxDescription)] = clean(value, depth+1)
			}
		}
		return object
	}
	return v
}

// stored is the file with what is remembered of a server: what the last run that began has offered, and what the server
// has said since.
type stored struct {
	Offered *catalogue `json:"offered"`
	Newest  *catalogue `json:"newest"`
}

// form is changed with what is made of a server's list, so that what was remembered before is asked for again.
const form = "2"

// file returns where the tools of a server are remembered, "" where nothing is. Another definition is another server.
func (s *server) file() string {
	if s.pool.Cache == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s.pool.Dir + "\x00" + s.Name + "\x00" + s.Text + "\x00" + form))
	return filepath.Join(s.pool.Cache, hex.EncodeToString(sum[:16])+".json")
}

// read returns what is remembered. What cannot be read is asked for again.
func (s *server) read() (f stored) {
	data, err := durable.ReadRegular(s.file(), maxCatalogue)
	if err != nil || json.Unmarshal(data, &f) != nil {
		return stored{}
	}
	return f
}

// write remembers what is not empty: a server that had nothing may only be broken.
func (s *server) write(f stored) {
	data, err := json.Marshal(f)
	if err == nil && len(data) <= maxCatalogue {
		err = durable.New(durable.OS{}).Replace(s.file(), data)
	}
	if err != nil {
		s.pool.Log.Warn("the tools of an MCP server are not remembered", "server", s.Name, "err", err)
	}
}

// recall sets what models are offered to what is remembered. isNew says that the newest list counts.
func (s *server) recall(isNew bool) {
	if s.file() == "" {
		return
	}
	f := s.read()
	if isNew && f.Newest != nil && f.Newest != f.Offered {
		f = stored{Offered: f.Newest}
		s.write(f)
	}
	s.known = f.Offered
}

// remember stores what a server has said.
func (s *server) remember(c *catalogue) {
	if s.file() == "" || len(c.Tools) == 0 && len(c.Prompts) == 0 && !c.Resources {
		return
	}
	f := s.read()
	if f.Offered == nil {
		f.Offered = c
	}
	f.Newest = c
	s.write(f)
}

// Remembered reports how many tools a server has, as far as it was asked before.
func (p *Pool) Remembered(name string) (tools int, known bool) {
	s := p.server(name)
	if s == nil || s.file() == "" {
		return 0, false
	}
	f := s.read()
	if c := cmp.Or(f.Newest, f.Offered); c != nil {
		return len(c.Tools), true
	}
	return 0, false
}

// List starts a server, and returns the tools that it has, with the names that models see. A next run offers them.
func (p *Pool) List(ctx context.Context, name string) ([]Tool, error) {
	s := p.server(name)
	if s == nil {
		return nil, fmt.Errorf("is not among the servers that can be used")
	}
	if _, err := s.connected(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.known = s.listed
	s.mu.Unlock()
	tools := []Tool{}
	for _, n := range p.nameAll() {
		n.Name, n.Description = n.shown, p.Secrets.String(n.Description)
		tools = append(tools, n.Tool)
	}
	return tools, nil
}

// named is a tool with the server that has it, under the name that models see.
type named struct {
	Tool
	server *server
	shown  string
}

// maxName is how long the name of a tool may be.
const maxName = 64

// nameAll returns the tools of all servers, in the order of their names. A name that is taken, or too long, gets a part
// of a hash, so that it does not depend on what other servers have.
func (p *Pool) nameAll() (all []named) {
	taken := map[string]bool{}
	for _, s := range p.servers {
		if s.known == nil {
			continue
		}
		for _, t := range s.known.Tools {
			name := "mcp__" + sanitize(s.Name) + "__" + sanitize(t.Name)
			if len(name) > maxName || taken[strings.ToLower(name)] {
				sum := sha256.Sum256([]byte(s.Name + "\x00" + t.Name))
				name = fmt.Sprintf("%s_%x", name[:min(len(name), maxName-9)], sum[:4])
			}
			taken[strings.ToLower(name)] = true
			all = append(all, named{t, s, name})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.shown, b.shown) })
	return all
}

// sanitize returns a name with the characters that names of tools may have.
func sanitize(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
