package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/anthropic"
)

func fault(kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
}

func TestHTTPErrors(t *testing.T) {
	date := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		kind   llm.Kind
		after  time.Duration // within 2 s
		says   string
	}{
		"overloaded": {529, nil, fault("overloaded_error", "Overloaded"), llm.Overloaded, 0, "Overloaded"},
		"overloaded, after": {529, map[string]string{"Retry-After": "7"}, fault("overloaded_error", "Overloaded"),
			llm.Overloaded, 7 * time.Second, ""},
		"fault":           {500, nil, fault("api_error", "Internal server error"), llm.Overloaded, 0, ""},
		"a proxy's page":  {502, nil, "<html>bad gateway</html>", llm.Overloaded, 0, "bad gateway"},
		"unavailable":     {503, nil, "", llm.Overloaded, 0, "Service Unavailable"},
		"gateway timeout": {504, nil, fault("timeout_error", "slow"), llm.Overloaded, 0, ""},
		"request timeout": {408, nil, "", llm.Overloaded, 0, ""},
		"limited, seconds": {429, map[string]string{"Retry-After": "30"}, fault("rate_limit_error", "slow down"),
			llm.Limited, 30 * time.Second, "slow down"},
		"limited, date": {429, map[string]string{"Retry-After": date}, fault("rate_limit_error", "slow down"),
			llm.Limited, 90 * time.Second, ""},
		"limited, ms": {429, map[string]string{"Retry-After-Ms": "4500", "Retry-After": "30"},
			fault("rate_limit_error", "x"), llm.Limited, 4500 * time.Millisecond, ""},
		"spend limit": {429, nil, fault("rate_limit_error", "you have reached your spend limit"), llm.Spent,
			0, "spend limit"},
		"no credit": {400, map[string]string{"Retry-After": "3"},
			fault("invalid_request_error", "Your credit balance is too low to access the API."), llm.Spent, 0,
			"credit"},
		"unpaid": {402, nil, fault("billing_error", "pay"), llm.Spent, 0, ""},
		"bad key": {401, nil, fault("authentication_error", "invalid x-api-key"), llm.Denied, 0,
			"invalid x-api-key"},
		"forbidden": {403, nil, fault("permission_error", "no"), llm.Denied, 0, ""},
		"unknown model": {404, nil, fault("not_found_error", "model: claude-nine"), llm.Denied, 0,
			`does not know the model "claude-nine"`},
		"too long": {400, nil, fault("invalid_request_error",
			"prompt is too long: 210000 tokens > 200000 maximum"), llm.ContextFull, 0, "210000"},
		"too long with reply": {400, nil, fault("invalid_request_error",
			"input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"), llm.ContextFull, 0, ""},
		"too large": {413, nil, fault("request_too_large", "x"), llm.ContextFull, 0, ""},
		"bad request": {400, nil, fault("invalid_request_error",
			"messages.3: tool_use ids were found without tool_result"), llm.BadHistory, 0, "messages.3"},
		"redirect": {307, map[string]string{"Location": "http://evil.example/"}, "", llm.BadRequest, 0,
			"evil.example"},
		"a web page": {200, map[string]string{"Content-Type": "text/html"}, "<html>", llm.BadRequest, 0,
			"web page"},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, s := range c.header {
					w.Header().Set(k, s)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, _, err := ask(t, v.model(anthropic.Options{Model: "claude-nine"}))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			if e.Kind != c.kind || e.After > c.after || c.after-e.After > 2*time.Second {
				t.Errorf("%s after %v, want %s after %v: %v", e.Kind, e.After, c.kind, c.after, err)
			}
			if c.after > 0 && e.After == 0 {
				t.Error("no time to wait")
			}
			if e.Status != c.status {
				t.Errorf("status %d", e.Status)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			if n := len(v.bodies); n != 1 {
				t.Errorf("asked %d times: the retries are not here", n)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	_, _, err = ask(t, anthropic.New(anthropic.Options{Model: "m", BaseURL: "http://" + at}))
	if llm.KindOf(err) != llm.Unreachable || !strings.Contains(err.Error(), at) {
		t.Errorf("got %v", err)
	}

	v := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, _, err := ask(t, v.model(anthropic.Options{})); llm.KindOf(err) != llm.Incomplete {
		t.Errorf("a connection closed without an answer: %v", err)
	}
	for _, u := range []string{"ftp://x/", "http://\x7f", "localhost:1234"} {
		if _, _, err := ask(t, anthropic.New(anthropic.Options{Model: "m",
			BaseURL: u})); llm.KindOf(err) != llm.BadRequest {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// The address may be given with or without slash and version, and only what was
// given in Options is sent.
func TestAddressAndEnvironment(t *testing.T) {
	for k, s := range map[string]string{
		"ANTHROPIC_API_KEY": "from-env", "ANTHROPIC_AUTH_TOKEN": "from-env",
		"ANTHROPIC_BASE_URL":       "http://from-env.invalid",
		"ANTHROPIC_CUSTOM_HEADERS": "X-From-Env: yes", "ANTHROPIC_PROFILE": "from-env",
	} {
		t.Setenv(k, s)
	}
	v := serve(t, streaming(turn("end_turn", text(0, "hi"))))
	for suffix, path := range map[string]string{
		"": "/v1/messages", "/": "/v1/messages", "/v1": "/v1/messages", "/v1/": "/v1/messages",
		"/api/anthropic": "/api/anthropic/v1/messages",
	} {
		m := anthropic.New(anthropic.Options{Model: "m", BaseURL: v.URL + suffix, Key: "k", Client: v.Client()})
		if _, _, err := ask(t, m); err != nil {
			t.Fatal(err)
		}
		if v.last.URL.Path != path {
			t.Errorf("%q asks %s, want %s", suffix, v.last.URL.Path, path)
		}
		if h := v.last.Header; h.Get("X-Api-Key") != "k" || h.Get("Authorization") != "" ||
			h.Get("X-From-Env") != "" || h.Get("Traceparent") != "" {
			t.Errorf("headers: %v", h)
		}
	}
}
