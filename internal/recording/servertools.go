package recording

import (
	"context"
	"slices"
	"strings"

	"muster"
	"muster/llm"
)

// ServerTools returns the tools of servers that a member had, in the order in which its model was told of them. They
// reach no server: each call is answered with what was recorded.
func (p *Player) ServerTools(member muster.Name) (tools []llm.Tool, isPlayed bool) {
	results := map[string]llm.Result{} // by the ids of calls
	var prefix *Prefix
	for _, c := range p.talks[talkKey(member, "")] {
		if prefix == nil {
			prefix = p.recording.Prefixes[c.Prefix]
		}
		for _, m := range c.Messages {
			for _, part := range m.Parts {
				if r, ok := part.(llm.Result); ok {
					results[r.ID] = r
				}
			}
		}
	}
	if prefix == nil {
		return nil, true
	}
	for _, spec := range prefix.Tools {
		if isOfServer(spec.Name) {
			tools = append(tools, recordedTool{spec, results})
		}
	}
	return tools, true
}

// isOfServer reports whether a tool is one of a server, or one that finds or calls those.
func isOfServer(name string) bool {
	return strings.HasPrefix(name, "mcp__") ||
		slices.Contains([]string{"search_tools", "call_tool", "list_resources", "read_resource"}, name)
}

// recordedTool is a tool of which the recording has the results.
type recordedTool struct {
	spec    llm.Spec
	results map[string]llm.Result
}

// Spec is what the model was told.
func (t recordedTool) Spec() llm.Spec { return t.spec }

// Run returns what the call has returned when it was recorded.
func (t recordedTool) Run(_ context.Context, c llm.Call, _ func(string)) (llm.Result, error) {
	if r, ok := t.results[c.ID]; ok {
		return r, nil
	}
	return llm.ErrorResult("The recording does not have what this call has returned."), nil
}
