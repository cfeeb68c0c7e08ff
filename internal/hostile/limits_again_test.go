package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// times calls f n times, or until the client has gone.
func (a *answer) times(n int, f func()) {
	for i := 0; i < n && !a.broken; i++ {
		f()
	}
}

// pieces writes an event of Chat Completions with pieces of calls.
func (a *answer) pieces(all string) { a.event(`{"choices":[{"delta":{"tool_calls":[%s]}}]}`, all) }

// item writes an event of the Responses API with a part of a reply.
func (a *answer) item(format string, args ...any) {
	a.event(`{"type":"response.output_item.done","item":%s}`, fmt.Sprintf(format, args...))
}

// list returns n times a text, with commas between.
func list(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

// tooFast answers that the rate is limited, with headers: a name and a value each.
func tooFast(headers ...string) func(*answer) {
	return func(a *answer) {
		for i := 0; i < len(headers); i += 2 {
			a.Header().Set(headers[i], headers[i+1])
		}
		a.WriteHeader(http.StatusTooManyRequests)
		a.raw(`{"error":{"message":"slow down"}}`)
	}
}

// bare answers with bytes that need not be HTTP. write reports whether the client is still there.
func bare(f func(write func(string) bool)) func(*answer) {
	return func(a *answer) {
		c, _, err := a.ResponseWriter.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		f(func(s string) bool { _, err := c.Write([]byte(s)); return err == nil })
	}
}

// withUsage answers with a report of usage.
func withUsage(usage string) func(*answer) {
	return func(a *answer) {
		if a.api == "responses" {
			object(`{"object":"response","status":"completed","output":[{"type":"message","content":[`+
				`{"type":"output_text","text":"hello"}]}],"usage":%s}`, usage)(a)
			return
		}
		object(`{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":%s}`, usage)(a)
	}
}

const (
	chunked   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	nameAgain = `{"index":0,"function":{"name":"bash","arguments":""}}`
)

// oddKinds are further ways in which a server answers. They are odd by their form rather than by their size.
var oddKinds = map[string]func(*answer){
	"many-choices": reply(func(a *answer) {
		a.times(20, func() { a.event(`{"choices":[%s]}`, list(10_000, `{"delta":{"content":"x"}}`)) })
	}),
	"one-byte": reply(func(a *answer) {
		a.times(100_000, func() { a.raw("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n") })
	}),
	"unkept-deltas": reply(func(a *answer) {
		event := `data: {"type":"response.output_text.delta","delta":"` + long + "\"}\n\n" // quoting each takes long
		a.forever(func() { a.raw(event) })
	}),
	"named-again": reply(func(a *answer) {
		a.pieces(`{"index":0,"function":{"name":"bash","arguments":"{\"command\":\"touch ran; ` +
			strings.Repeat("x", 1_000_000) + `"}}`)
		all := list(8000, nameAgain)
		a.times(20, func() { a.pieces(all) })
		a.pieces(`{"index":0,"function":{"arguments":"\"}"}}`)
	}),
	"many-indexes": reply(func(a *answer) {
		for i := range 7000 {
			a.pieces(fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"bash","arguments":"{}"}}`, i, i))
		}
		all := list(8000, nameAgain)
		a.times(20, func() { a.pieces(all) })
	}),
	"long-summary": reply(func(a *answer) {
		a.item(`{"type":"reasoning","summary":[%s]}`, list(45_000, `{"text":"aaaaaaaaaaaaaaaaaaaaaaaaaa"}`))
		a.text("hello")
	}),
	"many-texts": reply(func(a *answer) {
		a.item(`{"type":"message","content":[%s]}`, list(45_000, `{"text":"aaaaaaaaaaaaaaaaaaaaaaaaaa"}`))
	}),
	"larger-at-the-end": func(a *answer) {
		a.begin()
		a.text("hello")
		a.event(`{"type":"response.completed","response":{"output":[%s]}}`,
			list(2, `{"type":"message","content":[{"type":"output_text","text":"`+strings.Repeat(long, 29)+`"}]}`))
	},
	"hints": bare(func(write func(string) bool) {
		for write(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 500)+"\r\n\r\n", 100)) {
		}
	}),
	"trailers": bare(func(write func(string) bool) {
		for ok := write(chunked + "c\r\ndata: {}\n\n\r\n0\r\n"); ok; {
			ok = write(strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 100))
		}
	}),
	"one-byte-chunks": bare(func(write func(string) bool) {
		for ok := write(chunked); ok; {
			ok = write(strings.Repeat("1;"+strings.Repeat("e", 100)+"\r\n:\r\n", 1000))
		}
	}),
	"status-line": bare(func(write func(string) bool) {
		for write(strings.Repeat("HTTP/1.1 200 ", 1000)) {
		}
	}),
	"packed-error": func(a *answer) {
		a.Header().Set("Content-Encoding", "gzip")
		a.WriteHeader(http.StatusBadRequest)
		z := gzip.NewWriter(a)
		defer z.Close()
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 1000 {
			if _, err := z.Write(block); err != nil {
				return
			}
		}
	},
	"deep-error": func(a *answer) {
		a.WriteHeader(http.StatusBadRequest)
		a.raw(strings.Repeat(`{"error":`, 7000))
	},
	"spaces":     reply(func(a *answer) { a.forever(func() { a.raw(strings.Repeat(" ", 64<<10)) }) }),
	"names":      reply(func(a *answer) { a.forever(func() { a.raw("event: " + long + "\n") }) }),
	"wait-nan":   tooFast("Retry-After", "NaN"),
	"wait-inf":   tooFast("Retry-After", "1e999"),
	"wait-hex":   tooFast("Retry-After", "0x1p40"),
	"wait-minus": tooFast("Retry-After", "-1"),
	"wait-9999":  tooFast("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
	"wait-reset": tooFast("X-RateLimit-Remaining-Requests", "0", "X-RateLimit-Reset-Requests", "2000000h"),
	"huge-usage": withUsage(`{"prompt_tokens":1e300,"completion_tokens":-1.5,"input_tokens":1e300}`),
	"text-usage": withUsage(`"many"`),
	"odd-name": reply(func(a *answer) {
		a.pieces(`{"index":0,"id":"\u001b[2J\r\nx","function":{"name":"bash\u001b]0;evil\u0007\r\n","arguments":"{}"}}`)
	}),
	"no-name":     reply(func(a *answer) { a.pieces(`{"index":0,"id":"","function":{"name":" ","arguments":"{}"}}`) }),
	"calls-again": reply(func(a *answer) { a.call("same", `{"command":"true"}`) }),
}
