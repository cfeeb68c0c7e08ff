package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"muster/internal/testing/require"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// The log of a run has the model's retries, and neither the key nor a header or a body of a request, also where the
// server quotes them in its errors.
func TestTheLogHasNoKeyAndNoRequest(t *testing.T) {
	const key = "sk-test-0123456789abcdef"
	words := require.Value(script.Parse([]byte("speakers: {lead: [{say: The answer.}]}")))(t)
	var asked atomic.Int32
	model := llmtest.Handler(words.Model())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			model.ServeHTTP(rw, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(fmt.Sprint(r.Header), key) || !strings.Contains(string(body), "a secret goal") {
			t.Errorf("the request has no key or no goal: %v %s", r.Header, body)
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(rw, `{"type":"error","error":{"type":"overloaded_error","message":"x-api-key: %s a secret goal"}}`, key)
	}))
	defer server.Close()
	w := newWorld(t, "run", "a secret goal", "--teammates", "0", "--debug")
	path := filepath.Join(t.TempDir(), "deep", "muster.log")
	w.app.Env = append(w.app.Env, "ANTHROPIC_API_KEY="+key, "MUSTER_MODEL=anthropic/stand-in@"+server.URL, "MUSTER_LOG_FILE="+path)
	w.app.Start = w.app.startTeam
	w.run(t.Context(), 0)
	data := require.Value(os.ReadFile(path))(t)
	for _, want := range []string{`msg="process started"`, `msg="model retry"`, "status=503", "wait=", `msg="run left"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the log does not have %q:\n%s", want, data)
		}
	}
	for _, never := range []string{key, "secret goal", "x-api-key", "authorization", "overloaded_error"} {
		if strings.Contains(strings.ToLower(string(data)), never) {
			t.Errorf("the log has %q:\n%s", never, data)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// A key that an error quotes is not logged.
func TestSecretsAreHidden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "muster.log")
	a := &App{Env: []string{"SOME_TOKEN=0123456789", "EMPTY_KEY=", "MUSTER_LOG_FILE=" + path}}
	require.NoError(t, a.openLog(0))
	a.logger().Info("it fails", "err", fmt.Errorf("refused: %w", os.ErrPermission), "text", "with 0123456789.")
	a.logger().Info("it fails", "err", fmt.Errorf("401 for 0123456789"))
	a.closeLog(t.Context(), 0)
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "0123456789") || strings.Count(string(data), "[secret]") != 2 {
		t.Errorf("%v\n%s", err, data)
	}
}
