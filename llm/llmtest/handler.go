// Package llmtest is a stand-in for the servers of the model vendors, for tests. Handler speaks their streaming wire
// formats and lets any llm.Model answer, so that a scripted model can sit behind a real wire. Anthropic, OpenAIChat and
// OpenAIResponses start a server for a test.
//
// Like the real servers it refuses a conversation whose calls and results do not match. It writes a reply when the
// model has finished it: it streams in its format, not in time.
//
// Compatibility: the exported functions stay. What a server accepts follows the vendors.
package llmtest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"muster/llm"
)

// Provider is the Provider of the Thinking parts that a model behind the wire sees. The wire does not carry the name.
const Provider = "wire"

// Handler serves m as a server of all three APIs: POST /messages, /chat/completions and /responses, with and without
// /v1 in front.
//
// m receives the request parsed back. Its CacheKey comes from metadata.user_id or user, its CacheGroup from
// prompt_cache_key, and each from the other where a client sends only one. An
// *llm.Error of m becomes the matching HTTP error, with Status if set; Incomplete becomes a stream that breaks off.
func Handler(m llm.Model) http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"", "/v1"} {
		mux.HandleFunc("POST "+prefix+"/messages", serve(m, messagesAPI{}))
		mux.HandleFunc("POST "+prefix+"/chat/completions", serve(m, chatAPI{}))
		mux.HandleFunc("POST "+prefix+"/responses", serve(m, responsesAPI{}))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		messagesAPI{}.refuse(w, http.StatusNotFound, "not_found_error", r.Method+" "+r.URL.Path+" is not served here")
	})
	return mux
}

// asked is a request that came over the wire.
type wireRequest struct {
	llm.Request
	Model string
	Usage bool // chat: usage is wanted in the stream
}

// setKeys sets the agent's key and that of its group, "" if it is the same.
func (a *wireRequest) setKeys(user, cacheKey string) {
	a.CacheKey = cmp.Or(user, cacheKey)
	if cacheKey != a.CacheKey {
		a.CacheGroup = cacheKey
	}
}

// api is one wire format.
type api interface {
	// parse reads a request; an error is the client's fault.
	parse(body []byte) (wireRequest, error)
	// refuse writes an HTTP error; kind is one of the Messages API's words for it.
	refuse(w http.ResponseWriter, status int, kind, text string)
	// begin writes the beginning of a stream and some of its text; end the whole.
	begin(s *stream, a wireRequest)
	reply(s *stream, a wireRequest, r llm.Reply)
}

// serve returns the handler of one wire format.
func serve(m llm.Model, of api) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		a, err := of.parse(body)
		if err == nil {
			err = checkPairs(a.Messages)
		}
		if err != nil {
			of.refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		r, err := m.Reply(req.Context(), a.Request, func(llm.Delta) {})
		if err != nil {
			refuseError(w, req.Context(), of, a, err)
			return
		}
		if r.Model == "" {
			r.Model = a.Model
		}
		of.reply(startStream(w), a, r)
	}
}

// refuseError answers with what err would be on the wire. For Incomplete it cuts the connection in the middle of a
// stream.
func refuseError(w http.ResponseWriter, ctx context.Context, of api, a wireRequest, err error) {
	var e *llm.Error
	if !errors.As(err, &e) {
		if ctx.Err() == nil {
			of.refuse(w, http.StatusInternalServerError, "api_error", err.Error())
		}
		return
	}
	text := fmt.Sprint(e.Err)
	status, kind := http.StatusBadRequest, "invalid_request_error"
	switch e.Kind {
	case llm.Incomplete:
		of.begin(startStream(w), a)
		panic(http.ErrAbortHandler) // cuts the connection
	case llm.Overloaded:
		status, kind = 529, "overloaded_error"
	case llm.Limited:
		status, kind = http.StatusTooManyRequests, "rate_limit_error"
	case llm.Denied:
		status, kind = http.StatusUnauthorized, "authentication_error"
	case llm.ContextFull:
		text = "prompt is too long: " + text
		if _, ok := of.(messagesAPI); !ok {
			kind = "context_length_exceeded"
		}
	case llm.Spent:
		status, kind = http.StatusPaymentRequired, "billing_error"
	}
	if e.Status != 0 {
		status = e.Status
	}
	if e.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.After.Seconds()))))
	}
	of.refuse(w, status, kind, text)
}

// checkPairs returns what the vendors' servers say about calls without results and results without calls. Consecutive
// messages of one side count as one.
func checkPairs(ms []llm.Message) error {
	if len(ms) == 0 {
		return errors.New("messages: at least one message is required")
	}
	open := map[string]bool{}
	ever := map[string]bool{}
	for i, m := range mergeTurns(ms) {
		if i == 0 && m.Role != llm.User {
			return errors.New("messages: the first message must be the user's")
		}
		results := true // none but results so far
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Call:
				if ever[p.ID] {
					return fmt.Errorf("messages.%d: tool_use ids must be unique: %s", i, p.ID)
				}
				open[p.ID], ever[p.ID] = true, true
			case llm.Result:
				if !open[p.ID] {
					return fmt.Errorf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s",
						i, p.ID)
				}
				if !results {
					return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks "+
						"immediately after", i)
				}
				delete(open, p.ID)
			default:
				results = false
			}
		}
		if m.Role == llm.User && len(open) > 0 {
			for id := range open {
				return fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks "+
					"immediately after: %s", i-1, id)
			}
		}
	}
	return nil
}

// mergeTurns joins consecutive messages of one side.
func mergeTurns(ms []llm.Message) (out []llm.Message) {
	for _, m := range ms {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Parts = append(out[n-1].Parts[:len(out[n-1].Parts):len(out[n-1].Parts)], m.Parts...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// stream writes server-sent events.
type stream struct {
	w http.ResponseWriter
	n int // events so far, for formats that number them
}

// startStream writes the header of a stream of events.
func startStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w}
}

// object is a JSON object. Its keys are written in alphabetical order.
type object = map[string]any

// event writes one event. With an empty name it writes only the data.
func (s *stream) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // our own maps: a mistake in this package
	}
	if name != "" {
		_, _ = fmt.Fprintf(s.w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", b) // the client may be gone
	s.n++
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// splitText cuts s into a few pieces, as a stream would, but never inside a character.
func splitText(s string) (out []string) {
	rs := []rune(s)
	for size := len(rs)/3 + 1; len(rs) > 0; {
		n := min(size, len(rs))
		out = append(out, string(rs[:n]))
		rs = rs[n:]
	}
	return out
}

// decodeBody parses the body of a request.
func decodeBody(b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("the request body is not valid JSON: %w", err)
	}
	return nil
}

// parseTexts reads a string, or a list of blocks with a text each.
func parseTexts(raw json.RawMessage) ([]string, error) {
	var one string
	if len(raw) == 0 || json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil, nil
		}
		return []string{one}, nil
	}
	var blocks []struct{ Text string }
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, err
	}
	var out []string
	for _, b := range blocks {
		out = append(out, b.Text)
	}
	return out, nil
}

// parseDataURL returns the image in a data: URL.
func parseDataURL(url string) (llm.Image, error) {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return llm.Image{}, errors.New("an image must be a data: URL here")
	}
	b, err := base64.StdEncoding.DecodeString(data)
	return llm.Image{Media: media, Data: b}, err
}
