package openai_test

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
	"muster/llm/openai"
)

func fault(code, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"t","param":null,"code":%q}}`, message, code)
}

func TestHTTPErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		kind   llm.Kind
		after  time.Duration
		says   string
	}{
		"fault":          {500, nil, fault("server_error", "oops"), llm.Overloaded, 0, "oops"},
		"a proxy's page": {502, nil, "<html>bad gateway</html>", llm.Overloaded, 0, "bad gateway"},
		"unavailable, after": {503, map[string]string{"Retry-After": "2"},
			`{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.Overloaded,
			2 * time.Second, "Loading model"},
		"gateway timeout": {504, nil, "", llm.Overloaded, 0, ""},
		"limited": {429, map[string]string{"Retry-After": "30"}, fault("rate_limit_exceeded", "slow down"),
			llm.Limited, 30 * time.Second, "slow down"},
		"limited, reset": {429, map[string]string{"X-Ratelimit-Remaining-Tokens": "0",
			"X-Ratelimit-Reset-Tokens": "1m2.5s"}, fault("rate_limit_exceeded", "x"), llm.Limited,
			62500 * time.Millisecond, ""},
		"quota": {429, map[string]string{"Retry-After": "30"},
			fault("insufficient_quota", "You exceeded your current quota"), llm.Spent, 0, "quota"},
		"limit without time": {429, nil, fault("x", "no"), llm.Limited, 0, ""},
		"no balance": {402, nil, `{"error":{"message":"Insufficient Balance"}}`, llm.Spent, 0,
			"Insufficient"},
		"bad key": {401, nil, fault("invalid_api_key", "Incorrect API key"), llm.Denied, 0,
			"Incorrect API key"},
		"forbidden": {403, nil, fault("unsupported_country", "no"), llm.Denied, 0, ""},
		"unknown model": {404, nil, fault("model_not_found", "no such model"), llm.Denied, 0,
			`does not know the model "qwen9"`},
		"unknown model, 400": {400, nil, fault("model_not_found", "no such model"), llm.Denied, 0, `"qwen9"`},
		"no such page":       {404, nil, "404 page not found", llm.Denied, 0, "URL"},
		"too long":           {400, nil, fault("context_length_exceeded", "long"), llm.ContextFull, 0, "long"},
		"too long, in words": {400, nil,
			`{"object":"error","message":"This model's maximum context length is 8192 tokens.","code":400}`,
			llm.ContextFull, 0, "8192"},
		"too long, llama": {400, nil, `{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}`,
			llm.ContextFull, 0, ""},
		"too large": {413, nil, "", llm.ContextFull, 0, ""},
		"bad request": {400, nil, fault("invalid_value", "messages[3] is bad"), llm.BadRequest, 0,
			"messages[3]"},
		"unprocessable": {422, nil, `{"detail":[{"msg":"field required"}]}`, llm.BadRequest, 0, "field required"},
		"an error as text": {400, nil, `{"error":"does not support tools"}`, llm.BadRequest, 0,
			"does not support tools"},
		"redirect": {301, map[string]string{"Location": "https://evil.example/"}, "", llm.BadRequest, 0,
			"evil.example"},
		"a web page": {200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<html>",
			llm.BadRequest, 0, "web page"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, api := range []openai.API{openai.Chat, openai.Responses} {
				v := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					for k, s := range c.header {
						w.Header().Set(k, s)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				})
				_, _, err := ask(t, v.model(openai.Options{Model: "qwen9", API: api}))
				e, ok := errors.AsType[*llm.Error](err)
				if !ok {
					t.Fatalf("%T %v", err, err)
				}
				if e.Kind != c.kind || e.After != c.after || e.Status != c.status {
					t.Errorf("%s: %s after %v, status %d, want %s after %v: %v", api, e.Kind, e.After, e.Status,
						c.kind, c.after, err)
				}
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v does not say %q", err, c.says)
				}
				if n := len(v.bodies); n != 1 {
					t.Errorf("asked %d times: the retries are not here", n)
				}
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
	_, _, err = ask(t, openai.New(openai.Options{Model: "m", BaseURL: "http://" + at + "/v1"}))
	if llm.KindOf(err) != llm.Unreachable || !strings.Contains(err.Error(), at) {
		t.Errorf("got %v", err)
	}
	v := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, _, err := ask(t, v.model(openai.Options{})); llm.KindOf(err) != llm.Incomplete {
		t.Errorf("a connection closed without an answer: %v", err)
	}
	for _, u := range []string{"ftp://x/", "http://\x7f", "localhost:1234"} {
		if _, _, err := ask(t, openai.New(openai.Options{Model: "m", BaseURL: u})); llm.KindOf(err) != llm.BadRequest {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// The address may be given with or without slash and version, and only what was
// given in Options is sent.
func TestAddressAndEnvironment(t *testing.T) {
	for k, s := range map[string]string{
		"OPENAI_API_KEY": "from-env", "OPENAI_ADMIN_KEY": "from-env", "OPENAI_BASE_URL": "http://from-env.invalid",
		"OPENAI_ORG_ID":     "from-env",
		"OPENAI_PROJECT_ID": "from-env", "OPENAI_CUSTOM_HEADERS": "X-From-Env: yes",
	} {
		t.Setenv(k, s)
	}
	v := serve(t, streaming(completion("stop", content("hi"))))
	for suffix, path := range map[string]string{
		"": "/v1/chat/completions", "/": "/v1/chat/completions", "/v1": "/v1/chat/completions",
		"/v1/":         "/v1/chat/completions",
		"/api/paas/v4": "/api/paas/v4/chat/completions", "/v1beta/openai": "/v1beta/openai/chat/completions",
		"/compatible-mode/v1/": "/compatible-mode/v1/chat/completions",
	} {
		for _, key := range []string{"k", ""} {
			m := openai.New(openai.Options{Model: "m", BaseURL: v.URL + suffix, Key: key, Client: v.Client()})
			if _, _, err := ask(t, m); err != nil {
				t.Fatal(err)
			}
			if v.last.URL.Path != path {
				t.Errorf("%q asks %s, want %s", suffix, v.last.URL.Path, path)
			}
			want := ""
			if key != "" {
				want = "Bearer " + key
			}
			if h := v.last.Header; h.Get("Authorization") != want || strings.Contains(fmt.Sprint(h), "from-env") ||
				h.Get("X-From-Env") != "" {
				t.Errorf("headers: %v", h)
			}
		}
	}
}

// Which API is asked where nobody says.
func TestAuto(t *testing.T) {
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v1/responses") {
			streaming(response(completed, "", saysHi))(w, r)
			return
		}
		streaming(completion("stop"))(w, r)
	})
	for path, m := range map[string]llm.Model{
		"/v1/responses":        v.vendor(t, openai.Options{}),
		"/v1/chat/completions": v.model(openai.Options{}),
	} {
		if _, _, err := ask(t, m); err != nil {
			t.Fatal(err)
		}
		if v.last.URL.Path != path {
			t.Errorf("asked %s, want %s", v.last.URL.Path, path)
		}
	}
}
