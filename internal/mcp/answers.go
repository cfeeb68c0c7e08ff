package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster"
)

// This file stands between a server and the SDK, which ends the connection at the first message that it cannot read.
// What is no message of JSON-RPC is left out as log. An answer of a wrong form becomes an error of its request that
// says what is wrong, and the connection goes on.

// wrongAnswer is the code of an error that this client puts in place of an answer of a wrong form.
const wrongAnswer = -32099

// answers mends the answers of a server. Its methods are safe for concurrent use.
type answers struct {
	mu        sync.Mutex
	pending   []request // the oldest first
	cancelled []string  // ids of requests whose answer is not waited for
	answered  []string  // ids of the last requests that were answered
	notified  int       // notifications that no answer was taken for
	// inject gives the SDK a message. If nil, no more comes when what the server has sent is read.
	inject func(message []byte)
}

// request is a request that waits for its answer.
type request struct {
	id, method string
	stray      string // what was wrong with an answer that is probably for it
}

// strayGrace is how long the right answer is waited for after one with the id of no request. Only tests change it.
var strayGrace = 3 * time.Second

// maxRemembered is how many ids of earlier requests are remembered.
const maxRemembered = 100

// remember returns ids with one more.
func remember(ids []string, id string) []string {
	return append(ids[max(0, len(ids)-maxRemembered+1):], id)
}

// message is a message as it is on the wire. A field that is missing is nil.
type message map[string]json.RawMessage

// parse returns the JSON of a message; nil: it is none of JSON-RPC. Answers are taken without their version.
func parse(data []byte) message {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	var version, method string
	_ = json.Unmarshal(m["jsonrpc"], &version)
	isAnswer := m.has("result") || m.has("error")
	switch {
	case isAnswer && (version == "2.0" || m["jsonrpc"] == nil && m["method"] == nil && m["id"] != nil):
		delete(m, "method") // some servers repeat it
	case isAnswer, version != "2.0":
		return nil
	case m["method"] != nil:
		isID := !m.has("id") || strings.Contains(`"-0123456789`, string(m["id"][:1]))
		if json.Unmarshal(m["method"], &method) != nil || method == "" || !isID {
			return nil
		}
	case m["id"] == nil:
		return nil
	}
	m["jsonrpc"] = json.RawMessage(`"2.0"`)
	return m
}

// has reports whether a message has a field with a value.
func (m message) has(field string) bool { return m[field] != nil && string(m[field]) != "null" }

// encode returns the JSON of a message.
func (m message) encode() []byte {
	data, _ := json.Marshal(m) // it is made of JSON
	return data
}

// sent notes a message that goes to the server.
func (a *answers) sent(data []byte) {
	m := parse(data)
	if m == nil || m["method"] == nil {
		return
	}
	var method string
	_ = json.Unmarshal(m["method"], &method) // parse has read it
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.has("id") {
		a.pending = append(a.pending, request{id: string(m["id"]), method: method})
		return
	}
	a.notified++
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m["params"], &params)
	if id := string(params.ID); a.take(id) != nil {
		a.cancelled = remember(a.cancelled, id)
	}
}

// take removes the request with an id, and returns it; nil: it is not pending. The caller holds the lock.
func (a *answers) take(id string) *request {
	i := slices.IndexFunc(a.pending, func(r request) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	r := a.pending[i]
	a.pending = slices.Delete(a.pending, i, i+1)
	a.answered = remember(a.answered, id)
	return &r
}

// received returns the messages in what a server has sent, as the SDK can read them, and calls other with what is no
// message.
func (a *answers) received(data []byte, other func(text string)) (all [][]byte) {
	d := json.NewDecoder(bytes.NewReader(muster.TrimBOM(data)))
	for {
		at := d.InputOffset()
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			if rest := bytes.TrimSpace(muster.TrimBOM(data)[at:]); len(rest) > 0 {
				other(string(rest))
			}
			return all
		}
		var list []json.RawMessage
		if json.Unmarshal(one, &list) != nil || list == nil {
			list = []json.RawMessage{one}
		}
		isMessage := len(list) > 0
		for _, item := range list {
			m := parse(item)
			if isMessage = isMessage && m != nil; m == nil {
				continue
			}
			if m = a.mended(m); m != nil {
				all = append(all, m.encode())
			}
		}
		if !isMessage {
			other(string(one))
		}
	}
}

// mended returns a message as the SDK can read it; nil: nothing waits for it.
func (a *answers) mended(m message) message {
	if m["method"] != nil { // a request of the server, or a notification
		return m
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(m["id"])
	r := a.take(id)
	var text string
	if r == nil && json.Unmarshal(m["id"], &text) == nil { // some servers make a text of the number
		r = a.take(text)
	}
	if r == nil {
		a.stray(m, id)
		return nil
	}
	m["id"] = json.RawMessage(r.id)
	switch {
	case m.has("error"):
		m["error"] = mendedError(m["error"])
		delete(m, "result")
	case m["result"] == nil || !m.has("result") && r.method != "ping":
		return failed(r.id, "it has neither a result nor an error")
	default:
		m["result"] = mendedResult(r.method, m["result"])
	}
	return m
}

// stray notes an answer with an id that no pending request has. The request that it is probably for fails unless its
// answer comes soon. The caller holds the lock.
func (a *answers) stray(m message, id string) {
	if i := slices.Index(a.cancelled, id); i >= 0 {
		a.cancelled = slices.Delete(a.cancelled, i, i+1)
		return
	}
	said := strings.ToLower(string(m["error"]))
	isOfNone := !m.has("id") && (!m.has("error") || strings.Contains(said, "-32601") ||
		strings.Contains(said, "notif") || strings.Contains(said, "initialized"))
	if isOfNone && a.notified > 0 { // some servers answer notifications too
		a.notified--
		return
	}
	if len(a.pending) == 0 || len(a.pending) > 1 && slices.Contains(a.answered, id) {
		return
	}
	r := &a.pending[0]
	if r.stray != "" {
		return
	}
	if r.stray = fmt.Sprintf("it has the id %s, and the request has %s", quoted(id), r.id); m.has("error") {
		r.stray += ": " + quoted(string(m["error"]))
	}
	if a.inject != nil {
		asked := r.id
		time.AfterFunc(strayGrace, func() {
			if m := a.missing(asked, ""); m != nil {
				a.inject(m)
			}
		})
	}
}

// missing returns the error of a request that is still pending and that no answer comes for; nil: it is not pending.
// reason says why where no stray answer does.
func (a *answers) missing(id, reason string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.take(id)
	if r == nil {
		return nil
	}
	return failed(id, cmp.Or(r.stray, reason)).encode()
}

// quoted returns JSON of a server as a part of a line.
func quoted(text string) string {
	if text == "" {
		return "(none)"
	}
	return said(text)
}

// failed returns the answer to a request that says what is wrong with the one that the server has given.
func failed(id, reason string) message {
	text, _ := json.Marshal(reason)
	return message{"jsonrpc": json.RawMessage(`"2.0"`), "id": json.RawMessage(id),
		"error": json.RawMessage(fmt.Sprintf(`{"code":%d,"message":%s}`, wrongAnswer, text))}
}

// mendedError returns an error as JSON-RPC has it. Servers leave out the code, or send a text.
func mendedError(data json.RawMessage) json.RawMessage {
	var e struct {
		Code    int64
		Message string
	}
	if json.Unmarshal(data, &e) == nil && e.Message != "" && e.Code != 0 {
		return data
	}
	var text string
	var fields message
	switch {
	case json.Unmarshal(data, &text) == nil:
	case json.Unmarshal(data, &fields) == nil && json.Unmarshal(fields["message"], &text) == nil && text != "":
	default:
		text = string(data)
	}
	out, _ := json.Marshal(map[string]any{"code": -32000, "message": text})
	return out
}

// mendedResult returns the result of a method as the SDK can read it. What is not known stays as it is: the SDK says
// what is wrong with it, and the connection goes on.
func mendedResult(method string, data json.RawMessage) json.RawMessage {
	switch method {
	case "tools/call":
		return mendedCall(data)
	case "tools/list":
		return mendedList(data)
	case "initialize":
		return mendedStart(data)
	}
	return data
}

// mendedCall returns the result of a tool. One of a wrong form is an error that says what is wrong and what the server
// has said.
func mendedCall(data json.RawMessage) json.RawMessage {
	var r message
	wrong := ""
	if json.Unmarshal(data, &r) != nil {
		r, wrong = message{"content": data}, "it is no object"
	}
	var list []json.RawMessage
	switch content := r["content"]; {
	case wrong != "":
		list = []json.RawMessage{textContent(content)}
	case !r.has("content") && r.has("toolResult"): // the protocol of 2024-10-07
		list = []json.RawMessage{textContent(r["toolResult"])}
	case !r.has("content") && r.has("structuredContent"):
	case !r.has("content"):
		wrong = "it has no content"
	case json.Unmarshal(content, &list) != nil:
		wrong, list = "its content is no list", []json.RawMessage{content}
	}
	unknown := 0
	for i, item := range list {
		var one sdk.CallToolResult
		if json.Unmarshal(fmt.Appendf(nil, `{"content":[%s]}`, item), &one) == nil {
			continue
		}
		var fields struct{ Type string }
		if json.Unmarshal(item, &fields) == nil && fields.Type != "" {
			text := fmt.Sprintf("[content of the type %q, which cannot be read: %s]", fields.Type, item)
			data, _ := json.Marshal(text)
			list[i] = textContent(data)
		} else {
			list[i] = textContent(item)
		}
		unknown++
	}
	if wrong == "" && unknown > 0 && unknown == len(list) {
		wrong = "its content has an unknown form"
	}
	var isError bool
	if json.Unmarshal(r["isError"], &isError) != nil {
		isError = strings.EqualFold(strings.Trim(string(r["isError"]), `"`), "true")
	}
	if wrong != "" {
		isError = true
		text, _ := json.Marshal("This answer has a wrong form: " + wrong + ".")
		list = slices.Insert(list, 0, textContent(text))
	}
	out := message{"content": json.RawMessage("[]"), "isError": json.RawMessage(strconv.FormatBool(isError))}
	if r.has("structuredContent") {
		out["structuredContent"] = r["structuredContent"]
	}
	if len(list) > 0 {
		out["content"], _ = json.Marshal(list)
	}
	return out.encode()
}

// textContent returns a value of JSON as content of a tool: a text as it is, and anything else as its JSON.
func textContent(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	data, _ := json.Marshal(map[string]string{"type": "text", "text": text})
	return data
}

// mendedList returns a list of tools in which each can be read. Of one that cannot, what can be read is left: at least
// its name.
func mendedList(data json.RawMessage) json.RawMessage {
	var r message
	var list []json.RawMessage
	if json.Unmarshal(data, &r) != nil || json.Unmarshal(r["tools"], &list) != nil {
		return data
	}
	tools := []json.RawMessage{}
	for _, item := range list {
		var fields message
		var name string
		if json.Unmarshal(item, &fields) != nil || json.Unmarshal(fields["name"], &name) != nil || name == "" {
			continue
		}
		for field, value := range fields {
			one := message{"name": fields["name"], field: value}
			if json.Unmarshal(one.encode(), &sdk.Tool{}) != nil {
				delete(fields, field)
			}
		}
		tools = append(tools, fields.encode())
	}
	out := message{}
	out["tools"], _ = json.Marshal(tools)
	var cursor string
	if json.Unmarshal(r["nextCursor"], &cursor) == nil && cursor != "" {
		out["nextCursor"] = r["nextCursor"]
	}
	return out.encode()
}

// mendedStart returns the answer to initialize. Servers say of what they have that it is true.
func mendedStart(data json.RawMessage) json.RawMessage {
	var r, has message
	if json.Unmarshal(data, &r) != nil || json.Unmarshal(data, &sdk.InitializeResult{}) == nil {
		return data
	}
	if json.Unmarshal(r["capabilities"], &has) == nil {
		maps.DeleteFunc(has, func(_ string, value json.RawMessage) bool {
			return string(value) == "false" || string(value) == "null"
		})
		for name, value := range has {
			if value[0] != '{' {
				has[name] = json.RawMessage("{}")
			}
		}
		r["capabilities"] = has.encode()
	}
	for field, value := range r {
		if json.Unmarshal(message{field: value}.encode(), &sdk.InitializeResult{}) != nil {
			delete(r, field)
		}
	}
	return r.encode()
}

// noting is the input of a server's program. It notes what is sent.
type noting struct {
	io.WriteCloser
	answers *answers
}

// Write sends messages. The SDK writes each at once.
func (n noting) Write(data []byte) (int, error) {
	n.answers.sent(data)
	return n.WriteCloser.Write(data)
}

// mendAnswer mends the answer of a server over HTTP to a message.
func mendAnswer(r *http.Request, answer *http.Response, other func(text string)) error {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	a := &answers{}
	if a.sent(data); len(a.pending) == 0 {
		return nil
	}
	asked := a.pending[0]
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	whole := answer.Body
	switch {
	case answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusInternalServerError:
		if asked.method != "tools/call" {
			return nil
		}
		status := answer.Status
		answer.Body = &lazyBody{ReadCloser: whole, read: func() ([]byte, error) {
			data, err := io.ReadAll(whole)
			for _, m := range a.received(data, other) {
				if string(parse(m)["id"]) == asked.id {
					return m, nil
				}
			}
			return a.missing(asked.id, "it answers HTTP "+status+": "+said(string(data))), err
		}}
		answer.StatusCode, answer.Status = http.StatusOK, "200 OK"
	case answer.StatusCode != http.StatusOK:
		return nil
	case media == "text/event-stream":
		canResume := false
		var event []byte // the data of the event that is read
		data := func() (out []byte) {
			for _, m := range a.received(event, other) {
				out = append(append(append(out, "data: "...), m...), "\n\n"...)
			}
			event = nil
			return out
		}
		answer.Body = &lineReader{Closer: whole, r: bufio.NewReader(whole), mend: func(line []byte) []byte {
			canResume = canResume || bytes.HasPrefix(line, []byte("id:"))
			text, isData := bytes.CutPrefix(line, []byte("data:"))
			if isData {
				event = append(event, text...)
				return nil
			}
			if len(bytes.TrimSpace(line)) == 0 {
				return append(data(), line...)
			}
			return line
		}, end: func() []byte {
			out := data()
			if canResume {
				return out
			}
			if m := a.missing(asked.id, "its stream has ended without the answer"); m != nil {
				out = slices.Concat(out, []byte("\ndata: "), m, []byte("\n\n"))
			}
			return out
		}}
		return nil
	default:
		answer.Body = &lazyBody{ReadCloser: whole, read: func() ([]byte, error) {
			data, err := io.ReadAll(whole)
			if err != nil {
				return nil, err
			}
			for _, m := range a.received(data, other) {
				if string(parse(m)["id"]) == asked.id {
					return m, nil
				}
			}
			return a.missing(asked.id, "it is no message of the protocol: "+said(string(data))), nil
		}}
	}
	answer.ContentLength = -1
	answer.Header = answer.Header.Clone()
	answer.Header.Del("Content-Length")
	answer.Header.Set("Content-Type", "application/json")
	return nil
}

// lazyBody is a body whose content is made of the whole when it is read first.
type lazyBody struct {
	io.ReadCloser
	read func() ([]byte, error)
	rest io.Reader
}

// Read reads a part of the body.
func (b *lazyBody) Read(p []byte) (int, error) {
	if b.rest == nil {
		data, err := b.read()
		if err != nil {
			return 0, err
		}
		b.rest = bytes.NewReader(data)
	}
	return b.rest.Read(p)
}

// lineReader reads what mend makes of each line, which has its end, and then what end returns.
type lineReader struct {
	io.Closer
	r    *bufio.Reader
	mend func(line []byte) []byte
	end  func() []byte
	rest []byte // of what was made
	err  error  // of r
}

// Read reads a line, or a part of one.
func (m *lineReader) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		var line []byte
		if line, m.err = m.line(); len(line) > 0 {
			m.rest = m.mend(line)
		}
		if errors.Is(m.err, io.EOF) && m.end != nil {
			m.rest = append(m.rest, m.end()...)
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// errTooLong is the error of a message that is longer than maxMessage.
var errTooLong = fmt.Errorf("it has sent more than %d MB at once", maxMessage>>20)

// line returns the next line, with its end.
func (m *lineReader) line() (line []byte, err error) {
	for {
		part, err := m.r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxMessage {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
