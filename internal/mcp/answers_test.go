package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// wrongs are answers to a call whose id is ID, each with what the model reads. An answer with an @ before its text is
// no error.
var wrongs = map[string]string{
	`{"jsonrpc":"2.0","id":ID,"result":{"content":"2 words"}}`:                                             "its content is no list.\n2 words",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":{"type":"text","text":"one"}}}`:                          "its content is no list.\none",
	`{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"n":2}}}`:                                     `@{"n":2}`,
	`{"jsonrpc":"2.0","id":ID,"result":{}}`:                                                                "it has no content",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":null}}`:                                                  "it has no content",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`:                                                    "@",
	`{"jsonrpc":"2.0","id":ID,"result":"done"}`:                                                            "it is no object.\ndone",
	`{"jsonrpc":"2.0","id":ID,"result":[1]}`:                                                               "it is no object.\n[1]",
	`{"jsonrpc":"2.0","id":ID,"result":null}`:                                                              "it has neither a result nor an error",
	`{"jsonrpc":"2.0","id":ID}`:                                                                            "it has neither a result nor an error",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"chart","data":[1]}]}}`:                         `[content of the type "chart", which cannot be read: `,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"},{"type":"chart"}]}}`:        "@ok",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":["a","b"]}}`:                                             "its content has an unknown form.\na",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":5}]}}`:                            `cannot be read: {"type":"text","text":5}`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"%%","mimeType":"image/png"}]}}`: `content of the type "image"`,
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"no"}],"isError":"true"}}`:        "no",
	`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"}],"_meta":"x"}}`:             "@ok",
	`{"jsonrpc":"2.0","id":ID,"result":{"toolResult":"old"}}`:                                              "@old",
	`{"jsonrpc":"2.0","id":ID,"error":{"message":"boom"}}`:                                                 "refuses this: boom",
	`{"jsonrpc":"2.0","id":ID,"error":{"code":"E1","message":"boom"}}`:                                     "refuses this: boom",
	`{"jsonrpc":"2.0","id":ID,"error":"boom"}`:                                                             "refuses this: boom",
	`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"boom"},"result":null}`:                     "refuses this: boom",
	`{"jsonrpc":"2.0","id":ID,"error":null,"result":{"content":[{"type":"text","text":"ok"}]}}`:            "@ok",
	`{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"ok"}]}}`:                       "@ok",
	`{"id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}`:                                         "@ok",
	`{"jsonrpc":"2.0","id":ID,"method":"tools/call","result":{"content":[{"type":"text","text":"ok"}]}}`:   "@ok",
	`{"jsonrpc":"2.0","id":999,"result":{"content":[{"type":"text","text":"ok"}]}}`:                        "has given a wrong answer: it has the id 999, and the request has ID",
	`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}`:                          "has given a wrong answer: it has the id 1, and the request has ID",
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot parse"}}`:                         "it has the id null, and the request has ID: {\"code\":-32700,\"message\":\"cannot parse\"}",
	`[{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}]`:                       "@ok",
}

// An answer of a wrong form is an error of its call, which says what is wrong. The server lives on.
func TestWrongAnswers(t *testing.T) {
	p := prepared(t, "wrong")
	for answer, want := range wrongs {
		checkWrong(t, p, "mcp__wrong__say", answer, want)
	}
	if n := strings.Count(p.logged(), "MCP server started"); n != 1 || p.lines() != "" {
		t.Errorf("it was started %d times; told %s", n, p.lines())
	}
}

// checkWrong calls a tool that answers with a text, and checks what the model reads.
func checkWrong(t *testing.T, p *pool, name, answer, want string) {
	t.Helper()
	r := p.call(name, fmt.Sprintf(`{"answer":%q}`, answer))
	text, isFine := strings.CutPrefix(want, "@")
	text, _, _ = strings.Cut(text, "ID")
	if r.IsError == isFine || !strings.Contains(r.Text(), text) || strings.Contains(r.Text(), "closed") {
		t.Errorf("%s: error %v, %q; want %q", answer, r.IsError, r.Text(), want)
	}
}

// The same holds over HTTP, in one piece and as a stream.
func TestWrongAnswersOverHTTP(t *testing.T) {
	for _, media := range []string{"application/json", "text/event-stream", "text/html"} {
		t.Run(media, func(t *testing.T) {
			p := overHTTP(t, wrongHandler(media))
			for answer, want := range wrongs {
				checkWrong(t, p, "mcp__web__say", answer, want)
			}
			for answer, want := range map[string]string{"<html>": "it is no message of the protocol: <html>", "[]": "no message",
				`{"ok":true}`: "no message"} {
				if media == "text/event-stream" {
					want = "its stream has ended without the answer"
				}
				checkWrong(t, p, "mcp__web__say", answer, want)
			}
			checkWrong(t, p, "mcp__web__say", "500", "it answers HTTP 500 Internal Server Error: broken")
			if p.lines() != "" {
				t.Error(p.lines())
			}
		})
	}
}

// wrongHandler is a server over HTTP whose tool answers with what it is called with.
func wrongHandler(media string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var out bytes.Buffer
		answer(bytes.NewReader(append(data, '\n')), &out, "wrong", 1)
		text := strings.TrimSpace(out.String())
		switch {
		case text == "":
			w.WriteHeader(http.StatusAccepted)
			return
		case text == "500":
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		case media == "text/event-stream":
			text = "event: message\ndata: " + text + "\n\n"
		}
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, text)
	}
}

// Lines that are no messages of JSON-RPC are log, whatever they look like.
func TestNoise(t *testing.T) {
	p := prepared(t, "noisy")
	p.want("mcp__noisy__ok", `{}`, false, "ok")
	p.want("mcp__noisy__ok", `{}`, false, "ok")
	for _, line := range noise {
		if !strings.Contains(p.logged(), strings.ReplaceAll(said(line), `"`, `\"`)) {
			t.Errorf("the log has no %s", line)
		}
	}
	if p.lines() != "" {
		t.Error(p.lines())
	}
}

// A late answer to a request that was cancelled is for no other request.
func TestLateAnswer(t *testing.T) {
	a := &answers{}
	a.sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`))
	a.sent([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	a.sent([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`))
	for _, stray := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"notifications/cancelled"}}`} {
		if got := a.received([]byte(stray), func(string) {}); len(got) != 0 {
			t.Errorf("%s becomes %s", stray, got)
		}
	}
	got := a.received([]byte(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`), func(string) {})
	if len(got) != 1 || len(a.pending) != 0 {
		t.Errorf("%s", got)
	}
}

// A list of tools of which some cannot be read has the others, and a server may say of what it has that it is true.
func TestRudeTools(t *testing.T) {
	p := prepared(t, "sloppy")
	if got := strings.Join(names(p.Tools(false, nil)), " "); got != "mcp__sloppy__a mcp__sloppy__b mcp__sloppy__ok" {
		t.Errorf("the tools are %s; told %s", got, p.lines())
	}
	if !p.tool("mcp__sloppy__a").Spec().ReadOnly {
		t.Error("what can be read of a tool is lost")
	}
}
