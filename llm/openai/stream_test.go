package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/openai"
)

// A stream of three calls, cut at every byte, with the connection broken or
// closed as if all were well: never anything but the whole or an error to ask again.
func TestCutAtEveryByte(t *testing.T) {
	chat := completion("tool_calls", content("I do three."), piece(0, "a", "x", `{"p"`), piece(0, "", "", `:1}`),
		piece(1, "b", "y", ""), piece(2, "c", "z", `{"q":"r"}`))
	resp := response(completed, "", saysHi, callA, callB, strings.Replace(callA, `"a"`, `"c"`, 1))
	for _, c := range []struct {
		api  openai.API
		body string
		ends string // the event that makes it whole
	}{
		{openai.Chat, chat, finish("tool_calls")},
		{openai.Responses, resp, resp[strings.LastIndex(resp, "data: "):]},
	} {
		t.Run(string(c.api), func(t *testing.T) {
			var cut atomic.Int64
			v := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n := int(cut.Load())
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.body[:n])
				w.(http.Flusher).Flush()
				if n%2 == 0 {
					panic(http.ErrAbortHandler)
				}
			})
			m := v.model(openai.Options{API: c.api})
			end := strings.Index(c.body, c.ends) + len(strings.TrimSpace(c.ends)) + 2
			for n := range len(c.body) + 1 {
				cut.Store(int64(n))
				r, _, err := ask(t, m)
				switch kind := llm.KindOf(err); {
				case err == nil && n >= end && len(r.Message.Calls()) == 3 && r.Stop == llm.StopTools:
				case n < end && kind == llm.Incomplete, n < end && kind == llm.Overloaded:
				default:
					t.Fatalf("cut at %d, the end is at %d: %+v, %v", n, end, r, err)
				}
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	for api, begun := range map[openai.API]string{
		openai.Chat:      sse(content("and then")),
		openai.Responses: sse(created, `{"type":"response.output_text.delta","output_index":0,"delta":"and then"}`),
	} {
		cause := errors.New("claim revoked")
		ctx, cancel := context.WithCancelCause(context.Background())
		v := serve(t, func(w http.ResponseWriter, r *http.Request) {
			streaming(begun)(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // no terminal event, ever
		})
		_, err := v.model(openai.Options{API: api}).Reply(ctx, llm.Request{Messages: []llm.Message{user("x")}},
			func(d llm.Delta) {
				if strings.Contains(d.Text, "then") {
					cancel(cause)
				}
			})
		if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want the cause itself", api, err)
		}
	}
}

// Every piece of the stream is a sound for a watchdog, one with nothing to show too.
func TestCommentsAreHeard(t *testing.T) {
	heard := make(chan bool, 100)
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, ": keep-alive\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-heard: // goes on only when it was
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, completion("stop"))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := v.model(openai.Options{}).Reply(ctx, llm.Request{Messages: []llm.Message{user("x")}},
		func(llm.Delta) { heard <- true }); err != nil {
		t.Fatal(err)
	}
}
