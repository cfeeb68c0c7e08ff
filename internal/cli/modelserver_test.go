package cli

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/llm"
	"muster/llm/llmtest"
)

// serveModel serves a model until the script ends: serve VARIABLE KIND. The variable has its URL then. KIND is one of
// servers; "gone" listens nowhere, and "tls" has a certificate that nobody knows, which is in the file certificate.pem.
func serveModel(ts *testscript.TestScript, _ bool, args []string) {
	handler, ok := servers[args[1]]
	if !ok {
		ts.Fatalf("there is no server %q", args[1])
	}
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if args[1] == "tls" {
		s.StartTLS()
		file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("certificate.pem"), file, 0o600))
	} else {
		s.Start()
	}
	ts.Defer(s.Close)
	if args[1] == "gone" {
		s.Close()
	}
	ts.Setenv(args[0], s.URL)
}

// examined answers as the function says, and knows nothing of the conversation.
type examined func(r llm.Request) llm.Reply

// Reply implements llm.Model.
func (m examined) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	return m(r), nil
}

func says(text string) examined {
	return func(llm.Request) llm.Reply {
		return llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: text}}}}
	}
}

func adds(times int) examined {
	return func(r llm.Request) llm.Reply {
		if len(r.Tools) == 0 {
			return says("Hello.")(r)
		}
		parts := llm.Parts{llm.Thinking{Text: "Let me add.", Provider: llmtest.Provider, Opaque: json.RawMessage(`{"signature":"s"}`)}}
		for i := range times {
			parts = append(parts, llm.Call{ID: fmt.Sprint("call_", i), Name: "add", Input: json.RawMessage(`{"a":1,"b":2}`)})
		}
		return llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: parts},
			Usage: llm.Usage{Input: 120, Output: 30}, Model: "the-model-itself"}
	}
}

func refuses(status int, message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
	})
}

// refusesIf answers requests whose body has a text with 400 and a message, and the others as h does.
func refusesIf(text, message string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), text) {
			refuses(400, message).ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h.ServeHTTP(w, r)
	})
}

// poor lets an account pay for replies of 29,891 tokens.
func poor(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var q struct {
			Most int `json:"max_tokens"`
		}
		if err != nil || json.Unmarshal(body, &q) != nil || q.Most == 0 || q.Most > 29891 {
			refuses(402, "This request requires more credits, or fewer max_tokens. You can only afford 29891.").ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h.ServeHTTP(w, r)
	})
}

// keyed answers requests with the bearer token, and quotes any other.
func keyed(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := r.Header.Get("Authorization"); sent != "Bearer "+token {
			refuses(401, "not valid: "+sent).ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func answers(contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	})
}

// servers are the servers that a script can have, by kind.
var servers = map[string]http.Handler{
	"good":     llmtest.Handler(adds(2)),
	"one call": llmtest.Handler(adds(1)),
	"text":     llmtest.Handler(says("I would add 1 and 2.")),
	"leaked":   llmtest.Handler(says(`<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>`)),
	"tls":      llmtest.Handler(adds(2)),
	"gone":     llmtest.Handler(adds(2)),
	"key":      refuses(401, "Incorrect API key provided"),
	"model":    refuses(404, "The model does not exist"),
	"no model": refuses(400, "Model Not Exist"),
	"credit":   refuses(402, "Insufficient Balance"),
	"poor":     poor(llmtest.Handler(adds(2))),
	"keyed":    keyed("right-key-0123456789", llmtest.Handler(adds(2))),
	"limited":  refuses(429, "Slow down."),
	"busy":     refuses(529, "Overloaded"),
	"picky":    refuses(400, "temperature: range: 0..1"),
	"no tools": refusesIf(`"tools"`, "llama2 does not support tools", llmtest.Handler(says("Hello."))),
	"whole": answers("application/json", `{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",`+
		`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]}}]}`),
	"cut":   answers("text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"),
	"page":  answers("text/html", "<html>Welcome</html>"),
	"proxy": refuses(407, ""),
	"wall":  refuses(403, ""),
}
