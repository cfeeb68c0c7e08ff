package wire

import (
	"strings"
	"testing"

	"muster/llm"
)

// refusedTools are what servers say of a tool, each with the optional tools that the request is made without.
//
// Sources: reports of refusals to clients, and the vendors' pages.
var refusedTools = map[string]struct {
	status int
	body   string
	want   string
}{
	"Anthropic":            {400, `{"type":"error","error":{"type":"invalid_request_error","message":"tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12."}}`, "mcp__a__y"},
	"Anthropic, property":  {400, `{"type":"error","error":{"type":"invalid_request_error","message":"tools.1.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"}}`, "mcp__a__x"},
	"Anthropic, own tool":  {400, `{"type":"error","error":{"message":"tools.0.custom.name: too long"}}`, "mcp__a__x mcp__a__y"},
	"Anthropic, beyond":    {400, `{"type":"error","error":{"message":"tools.30.custom.input_schema: not valid"}}`, "mcp__a__x mcp__a__y"},
	"OpenAI":               {400, `{"error":{"message":"Invalid schema for function 'mcp__a__y': In context=('properties', 'ids'), array schema missing items.","type":"invalid_request_error","param":"tools[2].function.parameters","code":"invalid_function_parameters"}}`, "mcp__a__y"},
	"OpenAI, param":        {400, `{"error":{"message":"Invalid value","param":"tools[1].parameters"}}`, "mcp__a__x"},
	"OpenAI, too many":     {400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead."}}`, "mcp__a__x mcp__a__y"},
	"Gemini":               {400, `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[a].items: missing field.","status":"INVALID_ARGUMENT"}}]`, "mcp__a__y"},
	"Bedrock":              {400, `{"message":"The value at toolConfig.tools.1.toolSpec.inputSchema.json.type must be one of the following: object."}`, "mcp__a__x"},
	"Kimi":                 {400, `{"error":{"message":"Invalid request: tools.function.parameters is not a valid moonshot flavored json schema","type":"invalid_request_error"}}`, "mcp__a__x mcp__a__y"},
	"vLLM":                 {400, `{"detail":[{"type":"missing","loc":["body","tools",1,"function","parameters"],"msg":"Field required"}]}`, "mcp__a__x"},
	"llama.cpp":            {400, `{"error":{"code":400,"message":"JSON schema conversion failed:\nUnrecognized schema: {\"type\":\"file\"}"}}`, "mcp__a__x mcp__a__y"},
	"OpenRouter":           {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"tools.1.custom.input_schema: invalid\"}}"}}}`, "mcp__a__x"},
	"another tool's begin": {400, `{"error":{"message":"no tool mcp__a__xx"}}`, "mcp__a__x mcp__a__y"},
	"422":                  {422, `{"detail":"function mcp__a__x: bad"}`, "mcp__a__x"},
	"Ollama, no tools":     {400, `{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}`, ""},
	"another matter":       {400, `{"error":{"message":"temperature: must be at most 1"}}`, ""},
	"another status":       {500, `{"error":{"message":"tools.1.custom.input_schema: invalid"}}`, ""},
	"the model":            {404, `{"error":{"message":"no function mcp__a__x"}}`, ""},
}

// An error because of a tool names what the request can be made without.
func TestRefusedTools(t *testing.T) {
	tools := []llm.Spec{{Name: "bash"}, {Name: "mcp__a__x", Optional: true}, {Name: "mcp__a__y", Optional: true}}
	for name, c := range refusedTools {
		x := NewExchange(Peer{URL: "https://h"}, llm.Request{Tools: tools}, nil)
		e := x.byTool(x.errorForResponse(c.status, nil, []byte(c.body)), []byte(c.body))
		if got := strings.Join(e.Tools, " "); got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, e)
		}
		if len(e.Tools) == 1 && !strings.Contains(e.Error(), e.Tools[0]) {
			t.Errorf("%s: the error does not name the tool: %v", name, e)
		}
		x = NewExchange(Peer{}, llm.Request{Tools: tools[:1]}, nil)
		if e := x.byTool(x.errorForResponse(c.status, nil, []byte(c.body)), []byte(c.body)); e.Tools != nil {
			t.Errorf("%s: without optional tools: %v", name, e.Tools)
		}
	}
}
