package llmtest

import (
	"net/http/httptest"

	"muster/llm"
)

// T is the part of *testing.T that the servers need.
type T interface {
	Helper()
	Cleanup(func())
}

// Anthropic serves m by the Messages API until the test ends.
func Anthropic(t T, m llm.Model) *httptest.Server { t.Helper(); return server(t, m) }

// OpenAIChat serves m by Chat Completions until the test ends.
func OpenAIChat(t T, m llm.Model) *httptest.Server { t.Helper(); return server(t, m) }

// OpenAIResponses serves m by the Responses API until the test ends.
func OpenAIResponses(t T, m llm.Model) *httptest.Server { t.Helper(); return server(t, m) }

// server serves all three APIs, because the path says which one is meant.
func server(t T, m llm.Model) *httptest.Server {
	s := httptest.NewServer(Handler(m))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}
