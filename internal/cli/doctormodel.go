package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/repair"
	"muster/llm/retry"
)

// modelTimeout is how long a model may be silent when it is examined. A local server may have to load it first.
const modelTimeout = 3 * time.Minute

// modelExam finds out what works with a model. Each of its areas gets one finding; what was not found out is said, too.
type modelExam struct {
	name     string // as the user gives it
	settings config.Settings
	choice   config.Choice
	access   config.Access
	known    catalogue.Model

	status int       // of the last answer; 0: none came
	body   beginning // of the last answer
	found  map[string]workspace.Finding
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	const most = 64 << 10
	if left := most - b.Len(); left > 0 {
		b.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

// modelAreas are the areas, in the order in which people read them.
var modelAreas = [...]string{
	"endpoint", "key", "model", "streaming", "tools", "parallel calls", "thinking", "cache", "window",
}

// needsTools is what to do about a model without tools.
const needsTools = "members work by tools: use another model, or a server that knows the tools of this one"

// examineModel makes one small call to a model and says what works. A second one, without a tool, is made only if the
// first is refused as a bad request: it tells whether the tool is the reason.
func examineModel(ctx context.Context, a *App, name string) (workspace.Findings, error) {
	settings, _, err := config.Load(a.configOptions(""))
	if err != nil {
		return nil, err
	}
	if err := settings.Endpoints.CheckModel(name); err != nil {
		return nil, err
	}
	x := &modelExam{name: name, settings: settings, found: map[string]workspace.Finding{}}
	if x.choice, x.access, err = settings.Endpoints.Choose(name, a.Env); err != nil {
		x.broken("key", err, muster.HintOf(err))
		return x.findings(), nil
	}
	if x.choice.Provider == config.Script {
		return nil, muster.Errorf(muster.Invalid, "a script has no server that could be asked")
	}
	x.known = settings.Endpoints.Known(name, x.choice)
	model, err := newModel(a, name, settings, x.observe) //nolint:contextcheck // What reads its key has a limit.
	if err != nil {
		x.broken("key", err, muster.HintOf(err))
		return x.findings(), nil
	}
	model = retry.Wrap(model, retry.Options{Patience: -1, FirstTimeout: modelTimeout, IdleTimeout: modelTimeout,
		OnNote: func(line string) { x.note("key", line, "") }})
	x.lookUp()
	reply, err := model.Reply(ctx, examRequest(true), nil)
	isRefused := x.status == http.StatusBadRequest || x.status == http.StatusUnprocessableEntity
	if llm.KindOf(err) == llm.BadRequest && isRefused {
		refused := err
		if reply, err = model.Reply(ctx, examRequest(false), nil); err == nil {
			x.broken("tools", refused, needsTools)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		x.failed(err)
		return x.findings(), nil
	}
	x.replied(reply)
	return x.findings(), nil
}

func examRequest(withTool bool) llm.Request {
	r := llm.Request{System: []string{"You help to test a program."}, CacheKey: "doctor"}
	text := "Say hello."
	if withTool {
		text = "Call the tool add twice in one reply: for 1 and 2, and for 3 and 4. Say nothing else."
		r.Tools = []llm.Spec{{Name: "add", Description: "Adds two numbers.", Schema: json.RawMessage(
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`)}}
	}
	r.Messages = []llm.Message{{Role: llm.User, Parts: llm.Parts{llm.Text{Text: text}}}}
	return r
}

// observe looks at an answer while it is read.
func (x *modelExam) observe(r *http.Response) {
	x.status = r.StatusCode
	x.body.Reset()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, &x.body), r.Body}
}

// note, well and broken set the finding of an area. The first one stays.
func (x *modelExam) note(area, text, fix string) { x.set(area, workspace.Note, text, fix) }
func (x *modelExam) well(area, text string)      { x.set(area, workspace.Healthy, text, "") }
func (x *modelExam) broken(area string, err error, fix string) {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		err = e.Err
	}
	x.set(area, workspace.Broken, err.Error(), fix)
}

func (x *modelExam) set(area string, h workspace.Health, text, fix string) {
	if _, isSet := x.found[area]; !isSet {
		x.found[area] = workspace.Finding{Area: area, Health: h, Text: text, Fix: fix}
	}
}

// findings returns a finding of each area.
func (x *modelExam) findings() (all workspace.Findings) {
	for _, area := range modelAreas {
		x.note(area, "not tried", "")
		all = append(all, x.found[area])
	}
	return all
}

// lookUp sets what the catalogue and the settings say, and no call can find out.
func (x *modelExam) lookUp() {
	if w := x.known.Window; w > 0 {
		text := thousands(w) + " tokens"
		if x.known.MaxOutput > 0 {
			text += ", and at most " + thousands(x.known.MaxOutput) + " of them in a reply"
		}
		x.well("window", text+", by the catalogue or your settings")
		return
	}
	x.note("window", "not known: muster starts the conversation again when the server says that it is full",
		"say how long it is:  models: {"+config.Stored(x.name)+": {window: TOKENS}} in your own config.yaml")
}

// failed sets what an error says.
func (x *modelExam) failed(err error) {
	e := &llm.Error{Kind: llm.BadRequest, Err: err}
	errors.As(err, &e)
	fixKey := "see what is in " + x.access.KeyName
	switch {
	case x.access.Source.Command != "":
		fixKey = "see what this prints:  " + x.access.Source.Command
	case x.access.KeyName == "":
		fixKey = "name the key:  endpoints: {NAME: {url: URL, key_env: VARIABLE}} in your own config.yaml"
	}
	isAnswer := x.status >= 400 && x.status != http.StatusProxyAuthRequired || e.Kind == llm.Spent
	if isAnswer && e.Kind != llm.Overloaded && e.Kind != llm.Limited {
		x.well("endpoint", fmt.Sprintf("answers, with status %d", x.status))
	}
	switch {
	case e.Kind == llm.Spent:
		x.broken("key", e, "pay, raise the limit, or use another account or model")
	case e.Kind == llm.Denied && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		x.broken("key", e, fixKey)
	case e.Kind == llm.Denied && isAnswer:
		x.note("key", "the server did not say", "")
		x.broken("model", e, "look the name up at the vendor's, or see:  muster models")
	case e.Kind == llm.Overloaded || e.Kind == llm.Limited:
		x.broken("endpoint", e, "try again later; a run waits for it, and goes on by itself")
	case x.status == http.StatusOK && e.Kind == llm.Incomplete:
		x.well("endpoint", "answers")
		x.acceptKey()
		x.broken("streaming", e, "see what stands between you and the server, or use another server")
	case isAnswer:
		x.broken("model", e, "")
	default:
		x.broken("endpoint", e, "")
	}
}

// acceptKey sets that the server has taken the request with what was sent as a key.
func (x *modelExam) acceptKey() {
	switch {
	case x.access.Key+x.access.Source.Command != "":
		x.well("key", "was sent, and the server takes the request")
	case len(x.access.Header) > 0:
		x.well("key", "your headers were sent, and the server takes the request")
	default:
		x.well("key", "none is set, and the server wants none")
	}
}

func (x *modelExam) replied(r llm.Reply) {
	x.well("endpoint", "answers")
	x.acceptKey()
	x.well("model", "answers as "+r.Model)
	if body := bytes.TrimSpace(x.body.Bytes()); !bytes.HasPrefix(body, []byte("{")) {
		x.well("streaming", fmt.Sprintf("the reply came in %d events", bytes.Count(body, []byte("data:"))))
	} else {
		x.note("streaming", "the reply came in one piece: nothing is shown while the model works, and a long reply "+
			"may be taken for a stall", "")
	}
	x.setCalls(r)
	x.setThinking(r)
	switch u := r.Usage; {
	case u.Prompt() > u.Input:
		x.well("cache", fmt.Sprintf("%d tokens were read from it and %d written", u.CacheRead, u.CacheWrite))
	case u == llm.Usage{}:
		x.note("cache", "the server did not say how many tokens it has counted, so what a run costs is not known "+
			"either", "")
	default:
		x.note("cache", fmt.Sprintf("not tried: %d tokens are too few to be kept", u.Input), "")
	}
}

func (x *modelExam) setCalls(r llm.Reply) {
	fixed := repair.Reply(r, nil, []string{"add"})
	all, good := fixed.Message.Calls(), 0
	for _, c := range all {
		if c.Name == "add" && c.Malformed == "" {
			good++
		}
	}
	switch {
	case good == 0 && len(all) > 0:
		x.note("tools", fmt.Sprintf("the model's call cannot be read: %s %s", all[0].Name, all[0].Malformed), "")
	case good == 0:
		said := strings.TrimSpace(r.Message.Text())
		x.set("tools", workspace.Broken, fmt.Sprintf("the model was told to call a tool and did not (%s): %q",
			r.Stop, text.CutBytes(said, 200)), needsTools)
	case len(r.Message.Calls()) == 0:
		x.note("tools", "the server left the call in the text, where muster finds it: a server that knows the calls "+
			"of this model is safer", "")
	default:
		x.well("tools", "the model calls them")
	}
	switch {
	case good > 1:
		x.well("parallel calls", fmt.Sprintf("%d calls in one reply", good))
	case good == 1:
		x.note("parallel calls", "one call came where two were asked for: work takes more turns", "")
	}
}

func (x *modelExam) setThinking(r llm.Reply) {
	for _, p := range r.Message.Parts {
		if t, ok := p.(llm.Thinking); ok && (t.Text != "" || len(t.Opaque) > 0) {
			x.well("thinking", "the model thinks")
			return
		}
	}
	switch {
	case x.known.Thinking.Style != catalogue.None || x.settings.Effort != "":
		x.note("thinking", "was asked for, and none came: for so small a task it may need none", "")
	case x.known.Name == "":
		x.note("thinking", "not asked for, because nothing is known of the model",
			"ask for it:  effort: in your own config.yaml")
	default:
		x.well("thinking", "the model has none")
	}
}
