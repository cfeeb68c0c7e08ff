package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/wait"
)

// Nothing that a server sends, a tool prints or a file holds makes muster need much memory, disk or time.
func TestLimits(t *testing.T) {
	runTable(t, "limits", map[string]command{
		"server": hostileServer, "requests": requests, "asked": asked, "peak": peak, "expand": expand,
		"smaller": smaller,
	})
}

// measured is this test's program where the command peak starts it: it runs the program of its arguments, and writes the
// most memory that this has had to the file of the variable PEAK. Other systems than Linux do not tell it.
func measured() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state has the exit code
		close(over)
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	var last []byte
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-look.C:
			if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil &&
				bytes.Contains(status, []byte("VmHWM")) {
				last = status
			}
		}
	}
	_ = os.WriteFile(os.Getenv("PEAK"), last, 0o600) // without it peak fails
	os.Exit(cmd.ProcessState.ExitCode())
}

// peak MB PROGRAM... runs a program, which must need less memory than that. Its output is kept as exec keeps it.
func peak(ts *testscript.TestScript, neg bool, args []string) {
	path := filepath.Join(ts.Getenv("WORK"), "peak")
	ts.Setenv("PEAK", path)
	self, err := os.Executable()
	ts.Check(err)
	err = ts.Exec(self, args[1:]...)
	if (err != nil) != neg {
		ts.Fatalf("failed: %v, wanted to: %v", err, neg)
	}
	if runtime.GOOS != "linux" {
		return
	}
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindStringSubmatch(ts.ReadFile(path))
	if found == nil {
		ts.Fatalf("its memory was not measured")
	}
	most, _ := strconv.Atoi(args[0])
	if got, _ := strconv.Atoi(found[1]); got == 0 || got>>10 >= most {
		ts.Fatalf("it needed %d MB of memory, and may need %d", got>>10, most)
	}
}

// expand FILE... replaces each <N*TEXT> in the files by N times the text.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := regexp.MustCompile(`<(\d+)\*([^>]*)>`).ReplaceAllStringFunc(ts.ReadFile(name), func(s string) string {
			n, text, _ := strings.Cut(strings.Trim(s, "<>"), "*")
			times, err := strconv.Atoi(n)
			ts.Check(err)
			return strings.Repeat(text, times)
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// smaller DIR MB checks that the files below a directory have less than that together.
func smaller(ts *testscript.TestScript, _ bool, args []string) {
	most, _ := strconv.ParseInt(args[1], 10, 64)
	var all int64
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			fi, infoErr := d.Info()
			err = infoErr
			all += fi.Size()
		}
		return err
	}))
	if all>>20 >= most {
		ts.Fatalf("%s has %d MB", args[0], all>>20)
	}
}

// counted has how many requests each server was sent, by its URL.
var counted sync.Map // of *atomic.Int64

// requests URL N checks that a server was sent at most so many requests.
func requests(ts *testscript.TestScript, _ bool, args []string) {
	most, _ := strconv.Atoi(args[1])
	count, ok := counted.Load(args[0])
	if !ok {
		ts.Fatalf("there is no server at %s", args[0])
	}
	if n := count.(*atomic.Int64).Load(); n == 0 || n > int64(most) {
		ts.Fatalf("%s was sent %d requests", args[0], n)
	}
}

// asked URL waits until a server has been sent a request, and a little longer for the next one.
func asked(ts *testscript.TestScript, _ bool, args []string) {
	count, ok := counted.Load(args[0])
	if !ok {
		ts.Fatalf("there is no server at %s", args[0])
	}
	if _, ok := wait.Poll(time.Minute, func() bool { return count.(*atomic.Int64).Load() > 0 }); !ok {
		ts.Fatalf("%s was sent no request", args[0])
	}
	wait.Elapse(300 * time.Millisecond)
}

// server VAR KIND serves the three APIs until the script ends, and answers each request as KIND says; its URL is in
// the variable.
func hostileServer(ts *testscript.TestScript, _ bool, args []string) {
	kind := kinds[args[1]]
	if kind == nil {
		ts.Fatalf("there is no server %q", args[1])
	}
	n := new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		kind(&answer{ResponseWriter: w, api: r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]})
	}))
	ts.Defer(func() { s.CloseClientConnections(); s.Close() })
	counted.Store(s.URL, n)
	ts.Setenv(args[0], s.URL)
}

// answer is an answer of a server. It counts as broken once the client has gone.
type answer struct {
	http.ResponseWriter
	api    string // messages, completions or responses
	parts  int
	broken bool
}

func (a *answer) event(format string, args ...any) {
	a.raw("data: " + fmt.Sprintf(format, args...) + "\n\n")
}

func (a *answer) raw(s string) {
	if _, err := io.WriteString(a, s); err != nil {
		a.broken = true
	}
}

func (a *answer) forever(f func()) {
	for !a.broken {
		f()
	}
}

func (a *answer) begin() {
	a.Header().Set("Content-Type", "text/event-stream")
	if a.api == "messages" {
		a.event(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`)
	}
}

func (a *answer) text(s string) {
	switch a.api {
	case "messages":
		a.event(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":%q}}`, a.parts, s)
		a.event(`{"type":"content_block_stop","index":%d}`, a.parts)
	case "completions":
		a.event(`{"choices":[{"delta":{"content":%q}}]}`, s)
	default:
		a.event(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"message","role":"assistant",`+
			`"content":[{"type":"output_text","text":%q}]}}`, a.parts, s)
	}
	a.parts++
}

func (a *answer) call(id, input string) {
	const tool = "bash"
	switch a.api {
	case "messages":
		a.event(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,`+
			`"input":%s}}`, a.parts, id, tool, input)
		a.event(`{"type":"content_block_stop","index":%d}`, a.parts)
	case "completions":
		a.event(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
			`"function":{"name":%q,"arguments":%q}}]}}]}`, a.parts, id, tool, input)
	default:
		a.event(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call",`+
			`"call_id":%q,"name":%q,"arguments":%q}}`, a.parts, id, tool, input)
	}
	a.parts++
}

func (a *answer) end() {
	switch a.api {
	case "messages":
		a.event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`)
		a.event(`{"type":"message_stop"}`)
	case "completions":
		a.event(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
		a.event(`[DONE]`)
	default:
		a.event(`{"type":"response.completed","response":{"model":"m","output":[]}}`)
	}
}

func reply(f func(*answer)) func(*answer) {
	return func(a *answer) {
		a.begin()
		f(a)
		a.end()
	}
}

// object answers without a stream.
func object(format string, args ...any) func(*answer) {
	return func(a *answer) {
		a.Header().Set("Content-Type", "application/json")
		a.raw(fmt.Sprintf(format, args...))
	}
}

var long = strings.Repeat("x", 64<<10)

// kinds are the ways in which a server answers.
var kinds = map[string]func(*answer){
	"endless-text":   reply(func(a *answer) { a.forever(func() { a.text(long) }) }),
	"endless-parts":  reply(func(a *answer) { a.forever(func() { a.text("") }) }),
	"endless-pings":  reply(func(a *answer) { a.forever(func() { a.raw(strings.Repeat(": ping\n\n", 4096)) }) }),
	"endless-line":   reply(func(a *answer) { a.raw("data: "); a.forever(func() { a.raw(long) }) }),
	"endless-event":  reply(func(a *answer) { a.forever(func() { a.raw("data: " + long + "\n") }) }),
	"endless-object": func(a *answer) { object(`{"x":"`)(a); a.forever(func() { a.raw(long) }) },
	"endless-page": func(a *answer) {
		a.Header().Set("Content-Type", "text/html")
		a.forever(func() { a.raw(long) })
	},
	"endless-error": func(a *answer) {
		a.WriteHeader(http.StatusBadRequest)
		a.raw(`{"error":{"message":"`)
		a.forever(func() { a.raw(long) })
	},
	"endless-calls": reply(func(a *answer) {
		a.forever(func() { a.call(fmt.Sprint("c", a.parts), `{"command":"touch ran"}`) })
	}),
	"endless-header": func(a *answer) {
		for i := range 200 {
			a.Header().Set(fmt.Sprintf("X-%d", i), long)
		}
	},
	"bomb": func(a *answer) {
		a.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(a)
		defer z.Close()
		block := bytes.Repeat([]byte("data: {}\n\n"), 100_000)
		for range 1000 { // 1 GB
			if _, err := z.Write(block); err != nil {
				return
			}
		}
	},
	"many-values":    reply(func(a *answer) { a.event(`{"choices":[%s{}]}`, strings.Repeat("{},", 1_000_000)) }),
	"deep-event":     reply(func(a *answer) { a.event("%s", strings.Repeat(`{"error":`, 200_000)+strings.Repeat("}", 200_000)) }),
	"large-error":    reply(func(a *answer) { a.event(`{"error":{"message":%q}}`, strings.Repeat(long, 16)) }),
	"many-calls":     calls(300, `{"command":"touch ran"}`),
	"large-call":     calls(1, `{"command":"touch ran; : `+strings.Repeat(long, 20)+`"}`),
	"deep-call":      calls(1, `{"command":"touch ran","x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"}"),
	"long-id":        reply(func(a *answer) { a.call(long, `{"command":"touch ran"}`) }),
	"large-usage":    object(`{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9000000000000000000,"completion_tokens":-9000000000000000000}}`),
	"long-model":     object(`{"model":%q,"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`, long),
	"json-anthropic": object(`{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`),
	"redirect": func(a *answer) {
		a.Header().Set("Location", "/v1/chat/completions")
		a.WriteHeader(http.StatusTemporaryRedirect)
	},
	"come-back-in-a-year": func(a *answer) {
		a.Header().Set("Retry-After", "31536000")
		a.WriteHeader(http.StatusTooManyRequests)
	},
	"same-call": func(a *answer) {
		if a.Header().Set("X", "y"); called.Swap(true) {
			reply(func(a *answer) { a.text("Done.") })(a)
			return
		}
		reply(func(a *answer) {
			for range 3 {
				a.call("id", `{"command":"echo ran >> \"$HOME/ran\""}`)
			}
		})(a)
	},
	"many-choices": reply(func(a *answer) {
		event := `{"choices":[` + strings.Repeat(`{"delta":{"content":"x"}},`, 9999) + `{"delta":{"content":"x"}}]}`
		for range 20 {
			a.event("%s", event)
		}
	}),
	"one-byte": reply(func(a *answer) {
		for range 100_000 {
			a.raw("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		}
	}),
	"unkept-deltas": reply(func(a *answer) {
		event := `data: {"type":"response.output_text.delta","delta":"` + long + "\"}\n\n" // quoting each takes long
		a.forever(func() { a.raw(event) })
	}),
	"huge-usage": withUsage(`{"prompt_tokens":1e300,"completion_tokens":-1.5,"input_tokens":1e300}`),
	"text-usage": withUsage(`"many"`),
	"odd-name": reply(func(a *answer) {
		a.pieces(`{"index":0,"id":"\u001b[2J\r\nx","function":{"name":"bash\u001b]0;evil\u0007\r\n","arguments":"{}"}}`)
	}),
	"no-name":     reply(func(a *answer) { a.pieces(`{"index":0,"id":"","function":{"name":" ","arguments":"{}"}}`) }),
	"calls-again": reply(func(a *answer) { a.call("same", `{"command":"true"}`) }),
}

// called says that the server of the kind same-call has made its calls.
var called atomic.Bool

func calls(n int, input string) func(*answer) {
	return reply(func(a *answer) {
		for i := range n {
			a.call(fmt.Sprint("c", i), input)
		}
	})
}

func (a *answer) pieces(all string) { a.event(`{"choices":[{"delta":{"tool_calls":[%s]}}]}`, all) }

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
