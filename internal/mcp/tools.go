package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/internal/prompt"
	"muster/internal/text"
	"muster/internal/textmatch"
	"muster/llm"
	"muster/llm/repair"
	"muster/tool"
)

// maxOffered is how many bytes the tools of servers may take in each request. Those of the largest servers are found by
// search_tools where all would take more.
const maxOffered = 12 << 10

// The limits of what is shown.
const (
	maxFound     = 10      // tools of a search
	maxResources = 200     // of a list
	maxImage     = 3 << 20 // bytes; providers refuse larger ones
	hangGrace    = 5 * time.Second
)

// Tools returns what the models of a member are offered, in a fixed order. noImages says that its model takes none.
// allows reports whether the member may have a tool with a name that writes or does not; nil: it may have all.
func (p *Pool) Tools(noImages bool, allows func(name string, writes bool) bool) (list []llm.Tool) {
	all := slices.DeleteFunc(slices.Clone(p.names), func(n named) bool {
		return allows != nil && !allows(n.shown, !n.ReadOnly)
	})
	hidden := hiddenServers(all)
	var direct []llm.Tool
	var found, every []*remoteTool
	for _, n := range all {
		t := &remoteTool{named: n, noImages: noImages}
		every = append(every, t)
		if slices.Contains(hidden, n.server) {
			found = append(found, t)
		} else {
			direct = append(direct, t)
		}
	}
	if list = direct; len(found) > 0 {
		list = append(list, newSearch(found, hidden), &callTool{every})
	}
	hasResources := func(s *server) bool { return s.known != nil && s.known.Resources }
	if !slices.ContainsFunc(p.servers, hasResources) || allows != nil && !allows("read_resource", false) {
		return list
	}
	return append(list,
		tool.New("list_resources", prompt.Tool("list_resources"), p.listResources, tool.ReadOnly()),
		tool.New("read_resource", prompt.Tool("read_resource"), func(ctx context.Context, in resourceInput) (
			llm.Result, error) {
			return p.readResource(ctx, in, noImages)
		}, tool.ReadOnly()))
}

// hiddenServers returns the servers whose tools do not fit into the requests, beginning with the largest.
func hiddenServers(all []named) (hidden []*server) {
	sizes := map[*server]int{}
	var servers []*server
	for _, n := range all {
		if sizes[n.server] == 0 {
			servers = append(servers, n.server)
		}
		sizes[n.server] += len(n.shown) + len(n.Description) + len(n.Schema) + 60
	}
	slices.SortStableFunc(servers, func(a, b *server) int { return cmp.Compare(sizes[a], sizes[b]) })
	total := 0
	for _, s := range servers {
		if total += sizes[s]; total > maxOffered {
			hidden = append(hidden, s)
		}
	}
	return hidden
}

// remoteTool is a tool of a server.
type remoteTool struct {
	named
	noImages bool
}

// Spec returns what models are told. A tool that does not say that it only reads may change anything.
func (t *remoteTool) Spec() llm.Spec {
	return llm.Spec{Name: t.shown, Description: t.Description, Schema: t.Schema, ReadOnly: t.ReadOnly,
		NeedsPlan: !t.ReadOnly, Optional: true}
}

// Run calls the tool.
func (t *remoteTool) Run(ctx context.Context, c llm.Call, progress func(string)) (out llm.Result, err error) {
	defer func() { out.ID = c.ID }()
	return t.server.do(ctx, func(ctx context.Context, x *session) (llm.Result, error) {
		params := &sdk.CallToolParams{Name: t.Name, Arguments: t.realInput(c.Input)}
		if progress != nil {
			token := fmt.Sprint(t.server.pool.progress.Add(1))
			x.progress.Store(token, progress)
			defer x.progress.Delete(token)
			params.SetProgressToken(token)
		}
		r, err := x.CallTool(ctx, params)
		if err != nil {
			return llm.Result{}, err
		}
		return result(r, t.noImages), nil
	})
}

// do does something with a connection, within the time limit of the server. What goes wrong is a result that says so,
// but for the end of ctx.
func (s *server) do(ctx context.Context, f func(context.Context, *session) (llm.Result, error)) (llm.Result, error) {
	x, err := s.connected(ctx)
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	if err != nil {
		return llm.ErrorResult("The MCP server %s %s. Go on without it.", s.Name, text.EscapeTags(err.Error())), nil
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	returned := make(chan struct{})
	defer close(returned)
	context.AfterFunc(limited, func() { // a server that does not even read can only be ended
		select {
		case <-returned:
		case <-time.After(hangGrace):
			x.kill()
		}
	})
	r, err := f(limited, x)
	wire, isAnswer := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return llm.Result{}, context.Cause(ctx)
	case limited.Err() != nil:
		return llm.ErrorResult("The MCP server %s has not answered within %v. What the call has done is unknown.",
			s.Name, s.Timeout), nil
	case isAnswer && wire.Code == wrongAnswer:
		return llm.ErrorResult("The MCP server %s has given a wrong answer: %s. What the call has done is unknown.",
			s.Name, foreign(wire.Message, maxDescription)), nil
	case isAnswer && !errors.Is(err, sdk.ErrConnectionClosed):
		return llm.ErrorResult("The MCP server %s refuses this: %s", s.Name, foreign(wire.Message, maxDescription)), nil
	}
	return llm.ErrorResult("The MCP server %s has failed: %s. What the call has done is unknown.", s.Name,
		text.EscapeTags(x.explain(err).Error())), nil
}

// result returns what a tool has answered.
func result(r *sdk.CallToolResult, noImages bool) llm.Result {
	out := llm.Result{IsError: r.IsError, Parts: parts(r.Content, noImages)}
	// Servers give the same as text, for clients that do not read it.
	if out.Parts.Text() == "" && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			out.Parts = append(llm.Parts{plain(string(data))}, out.Parts...)
		}
	}
	if len(out.Parts) == 0 {
		out.Parts = tool.Text("").Parts
	}
	return out
}

// plain returns a text of a server as a part of a result.
func plain(s string) llm.Text {
	return llm.Text{Text: text.EscapeTags(text.Clean(s))}
}

// parts returns contents as parts of a result.
func parts(contents []sdk.Content, noImages bool) (list llm.Parts) {
	for _, c := range contents {
		switch c := c.(type) {
		case *sdk.TextContent:
			if c.Text != "" {
				list = append(list, plain(c.Text))
			}
		case *sdk.ImageContent:
			list = append(list, blob("an image", c.MIMEType, c.Data, noImages))
		case *sdk.AudioContent:
			list = append(list, blob("a sound", c.MIMEType, c.Data, true))
		case *sdk.ResourceLink:
			list = append(list, plain(fmt.Sprintf("[resource %s: %s %s]", c.URI, c.Name, c.Description)))
		case *sdk.EmbeddedResource:
			if c.Resource != nil {
				list = append(list, resource(c.Resource, noImages))
			}
		}
	}
	return list
}

// resource returns a resource as a part of a result.
func resource(r *sdk.ResourceContents, noImages bool) llm.Part {
	if len(r.Blob) == 0 {
		return plain(fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text))
	}
	return blob("the resource "+r.URI, r.MIMEType, r.Blob, noImages)
}

// blob returns an image where the model can see it, and otherwise says what there is.
func blob(what, media string, data []byte, noImages bool) llm.Part {
	isImage := slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media)
	if isImage && !noImages && len(data) <= maxImage {
		return llm.Image{Media: media, Data: data}
	}
	media = cmp.Or(media, "of an unknown type")
	return plain(fmt.Sprintf("[%s, %s, %d bytes: it cannot be shown]", what, media, len(data)))
}

// searchInput is the input of search_tools.
type searchInput struct {
	Query string `json:"query" jsonschema:"words that the name or the description of a tool may have"`
}

// newSearch returns the tool that finds the tools of hidden servers, which are all.
func newSearch(all []*remoteTool, hidden []*server) llm.Tool {
	var names []string
	for _, s := range hidden {
		names = append(names, fmt.Sprintf("%s (%d tools)", sanitize(s.Name), len(s.known.Tools)))
	}
	about := prompt.Tool("search_tools") + " Servers: " + text.List(names, maxFound) + "."
	return tool.New("search_tools", about, func(_ context.Context, in searchInput) (llm.Result, error) {
		return searchTools(all, in.Query), nil
	}, tool.ReadOnly())
}

// searchTools returns the tools that have the most of the words, the best first.
func searchTools(all []*remoteTool, query string) llm.Result {
	found := textmatch.Search(all, query, func(t *remoteTool) (name, about string) { return t.shown, t.Description })
	if len(found) == 0 {
		return tool.Text("No tool has these words.")
	}
	var b strings.Builder
	for _, t := range found[:min(len(found), maxFound)] {
		fmt.Fprintf(&b, "- %s: %s\n  input: %s\n", t.shown, t.Description, t.Schema)
	}
	if more := len(found) - maxFound; more > 0 {
		fmt.Fprintf(&b, "and %d more: use more words\n", more)
	}
	return tool.Text(b.String())
}

// callTool is the tool that calls the tools which search_tools finds.
type callTool struct{ all []*remoteTool }

// Spec returns what models are told. Whether a call writes is told by the tool that it names.
func (c *callTool) Spec() llm.Spec {
	return llm.Spec{Name: "call_tool", Description: prompt.Tool("call_tool"), NeedsPlan: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},` +
			`"input":{"type":"object","description":"as the schema of the tool has it"}},"required":["name","input"]}`),
		Reads: func(input json.RawMessage) bool {
			t, _, problem := c.find(input)
			return problem == "" && t.ReadOnly
		}}
}

// Run calls a tool.
func (c *callTool) Run(ctx context.Context, call llm.Call, progress func(string)) (llm.Result, error) {
	t, input, problem := c.find(call.Input)
	if problem != "" {
		r := llm.ErrorResult("%s", problem)
		r.ID = call.ID
		return r, nil
	}
	call.Input = input
	return t.Run(ctx, call, progress)
}

// find returns the tool that a call is for, with its input, or says what is wrong.
func (c *callTool) find(input json.RawMessage) (t *remoteTool, inner json.RawMessage, problem string) {
	var in struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	err := json.Unmarshal(input, &in)
	if err == nil {
		inner, err = llm.Input(in.Input)
	}
	if err != nil {
		return nil, nil, "call_tool takes the name of a tool and its input, an object: " + err.Error()
	}
	var names []string
	for _, t := range c.all {
		if strings.EqualFold(t.shown, in.Name) {
			return t, inner, ""
		}
		names = append(names, t.shown)
	}
	names = repair.Nearest(in.Name, names)
	return nil, nil, fmt.Sprintf("There is no tool %q. Find one with search_tools. The nearest names are: %s.", in.Name,
		text.List(names, maxFound))
}
