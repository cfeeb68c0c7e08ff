package wire

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/llm"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing":        {nil, 0},
		"seconds":        {map[string]string{"Retry-After": "12"}, 12 * time.Second},
		"a fraction":     {map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		"at once":        {map[string]string{"Retry-After": "0"}, time.Millisecond},
		"a date":         {map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:05:05 GMT"}, time.Minute},
		"a date gone by": {map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:00:00 GMT"}, time.Millisecond},
		"milliseconds":   {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, 1500 * time.Millisecond},
		"nonsense":       {map[string]string{"Retry-After": "soon"}, 0},
		"no number":      {map[string]string{"Retry-After": "NaN"}, time.Millisecond},
		"without end":    {map[string]string{"Retry-After": "1e300"}, time.Hour},
		"below nothing":  {map[string]string{"Retry-After": "-5"}, time.Millisecond},
		"reset": {map[string]string{"X-Ratelimit-Remaining-Requests": "0",
			"X-Ratelimit-Reset-Requests": "6m0s", "X-Ratelimit-Remaining-Tokens": "0",
			"X-Ratelimit-Reset-Tokens": "1s"}, 6 * time.Minute},
		"reset, not used": {map[string]string{"X-Ratelimit-Remaining-Requests": "3",
			"X-Ratelimit-Reset-Requests": "6m0s"}, 0},
		"reset, a time": {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0",
			"Anthropic-Ratelimit-Tokens-Reset": "2026-01-02T03:04:35Z"}, 30 * time.Second},

		// Our clock is a day off: what counts is the time by the clock of who answers.
		"a date, by the answer's clock": {map[string]string{"Retry-After": "Thu, 01 Jan 2026 03:05:05 GMT",
			"Date": "Thu, 01 Jan 2026 03:04:05 GMT"}, time.Minute},
		"a date ahead of ours": {map[string]string{"Retry-After": "Sat, 03 Jan 2026 03:05:05 GMT",
			"Date": "Sat, 03 Jan 2026 03:04:05 GMT"}, time.Minute},
		"a date that is far": {map[string]string{"Retry-After": "Sat, 03 Jan 2026 03:04:05 GMT",
			"Date": "Fri, 02 Jan 2026 03:04:05 GMT"}, time.Hour},
		"a date, measured by ours alone": {map[string]string{"Retry-After": "Sat, 03 Jan 2026 03:04:05 GMT"},
			time.Hour},
		"a date beyond everything": {map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT",
			"Date": "Fri, 02 Jan 2026 03:04:05 GMT"}, time.Hour},
		"a date, and a Date of nonsense": {map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:05:05 GMT",
			"Date": "today"}, time.Minute},
		"reset, by the answer's clock": {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0",
			"Anthropic-Ratelimit-Tokens-Reset": "2026-01-01T03:04:35Z", "Date": "Thu, 01 Jan 2026 03:04:05 GMT"},
			30 * time.Second},
		"reset, a time gone by": {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0",
			"Anthropic-Ratelimit-Tokens-Reset": "2026-01-01T03:04:35Z"}, time.Millisecond},
		"reset, measured by ours alone": {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0",
			"Anthropic-Ratelimit-Tokens-Reset": "2026-01-09T03:04:35Z"}, time.Hour},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := min(askedWait(h, now), MaxWait); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := clampSeconds(math.Inf(1)); got < 365*24*time.Hour {
		t.Errorf("an overflow: %v", got)
	}
}

func TestEndpoint(t *testing.T) {
	for in, want := range map[string][2]string{
		"https://h":                {"https://h/", "https://h/v1/"},
		"https://h/v1":             {"https://h/", "https://h/v1/"},
		" https://h/v1// ":         {"https://h/", "https://h/v1/"},
		"http://h:1/api/anthropic": {"http://h:1/api/anthropic/", "http://h:1/api/anthropic/v1/"},
		"https://h/api/paas/v4":    {"https://h/api/paas/v4/", "https://h/api/paas/v4/"},
		"https://h/v1beta/openai/": {"https://h/v1beta/openai/", "https://h/v1beta/openai/"},
		"https://h/video":          {"https://h/video/", "https://h/video/v1/"},
		"https://h/v1?key=a/b":     {"https://h/?key=a/b", "https://h/v1/?key=a/b"},
	} {
		if got := [2]string{Endpoint(in, "/", ""), Endpoint(in, "/v1/", "")}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// An account is an endpoint and a key, wherever the key stands, and nothing else.
func TestAccount(t *testing.T) {
	peer := func(url string, header map[string]string) Peer {
		p := NewPeer(url, "https://vendor", "m")
		p.Header = header
		return p
	}
	one := peer("http://h/v1", nil).Account("one", llm.Account{Requests: 3})
	if same := peer("http://h/v1/", map[string]string{"X-Team": "red"}).Account("one", llm.Account{}); one.ID != same.ID ||
		one.Requests != 3 || one.Model != "m" {
		t.Errorf("%+v, %+v", one, same)
	}
	for _, other := range []llm.Account{peer("http://h/v1", nil).Account("two", one), peer("http://i/v1", nil).Account("one", one),
		peer("http://h/v1", map[string]string{"Authorization": "Bearer secret-4711"}).Account("one", one)} {
		if other.ID == one.ID {
			t.Errorf("%+v", other)
		}
	}
}

// Every name becomes one that is taken; a good one stays, two stay two.
func TestName(t *testing.T) {
	good := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,20}$`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.StringMatching(`[a-z.:]{0,30}`).Draw(t, "b")
		for _, s := range []string{a, b} {
			got := Name(s, 20)
			if !good.MatchString(got) || good.MatchString(s) && got != s {
				t.Fatalf("%q becomes %q", s, got)
			}
		}
		if a != b && Name(a, 20) == Name(b, 20) {
			t.Fatalf("%q and %q become one", a, b)
		}
	})
}

func TestFaults(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for body, want := range map[string]string{
		`{"error":{"message":"a","code":"x"}}`: "a",
		`{"error":"b"}`:                        "b",
		`{"message":"c","code":400}`:           "c",
		`{"error":null,"message":"d"}`:         "d",
		"e\nmore":                              "e",
		"":                                     "Bad Request",
		`{"detail":"f"}`:                       `{"detail":"f"}`,
		strings.Repeat("ü", 1000):              "...",
	} {
		e := p.errorForResponse(400, nil, []byte(body))
		if e.Kind != llm.BadRequest || !strings.HasSuffix(e.Error(), want) || len(e.Error()) > 500 {
			t.Errorf("%.40q: %v", body, e)
		}
	}
}

// No error shows what may be secret in the URL of a server.
func TestErrorsShowNoSecrets(t *testing.T) {
	for _, base := range []string{"https://u:SECRET@h/v1", "https://h/v1?key=SECRET", "https://u:SECRET@h:x/v1", "SECRET@h", "ftp://u:SECRET@h"} {
		p := NewPeer(base, "https://vendor", "m")
		_, parse := http.NewRequest(http.MethodPost, Endpoint(base, "/v1/", "responses"), nil)
		x := NewExchange(p, llm.Request{}, nil)
		_, posted := x.Post(t.Context(), &http.Client{Transport: offline{}}, Endpoint(base, "/v1/", "responses"), nil, struct{}{}, nil)
		for _, err := range []error{
			posted, p.errUnreachable(&url.Error{Op: "Post", URL: base, Err: syscall.ECONNREFUSED}), p.errUnreachable(&url.Error{Op: "Post", URL: base, Err: errors.New("no route")}),
			p.errorForResponse(404, nil, nil), p.errorForResponse(500, nil, nil),
			p.errNotStream(302, http.Header{"Location": {"https://other"}}), p.errNotStream(200, http.Header{"Content-Type": {"text/html"}}),
		} {
			if err == nil || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s (%v): %v", base, parse, err)
			}
		}
	}
}

// offline is a network on which nothing is reached.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }
