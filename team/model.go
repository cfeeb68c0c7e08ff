package team

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/spend"
	"muster/internal/teammate"
	"muster/journal"
	"muster/llm"
	"muster/llm/retry"
)

// providers is what a process knows of the servers of models: their limits, their outages, and what was asked of them.
// The zero value is ready.
type providers struct {
	limiters retry.Limiters
	outages  retry.Outages
	openings openings
	tools    retry.Tools
}

// models opens the models of the members that live here.
type models struct {
	site      *site
	spending  *spending
	providers *providers
	notes     sync.Map // those about roles that were said
}

// of returns the model that a member's record names, as a role has it, with everything around it.
func (m *models) of(
	record muster.Member, role Role, now func() (muster.TaskID, int), onWait func(time.Time, error),
) (llm.Model, error) {
	tell := func(line string) { m.site.note(context.Background(), record.Name, line) }
	var all []retry.Candidate
	for _, name := range append([]string{record.Model}, role.Fallback...) {
		asked := record
		asked.Model = name
		model, err := m.open(role, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(c retry.Candidate) bool { return c.Name == name }) {
			continue
		}
		wrap := m.counted(asked, model, now, retry.Options{OnWait: onWait, OnTrouble: m.tellTrouble(record.Name),
			OnNote: tell})
		all = append(all, retry.Candidate{Name: name, Quick: wrap(retry.OverloadPatience), Patient: wrap(0)})
	}
	// The outermost: a model that its watchdog has cancelled is waited for while the member lives.
	return foreignModel{m.site.secrets.Model(retry.Fallback(&m.providers.outages, tell, all...))}, nil
}

func (m *models) subagent(
	record muster.Member, kind string, now func() (muster.TaskID, int), onWait func(time.Time, error),
) (x teammate.Subagent, err error) {
	c := &m.site.config
	role := c.role(kind)
	if role.Model == "" && role.Open == nil {
		return x, nil
	}
	record.Model = cmp.Or(role.Model, record.Model)
	x.Name, x.NoImages = record.Model, c.NoImages != nil && c.NoImages(c.nameOf(record.Model))
	x.MaxTokens = cmp.Or(role.MaxTokens, c.Limits.MaxTokens)
	x.Model, err = m.of(record, role, now, onWait)
	return x, err
}

func (m *models) open(role Role, name string) (llm.Model, error) {
	open := role.Open
	if open == nil {
		open = m.site.config.Model
	}
	return open(m.site.config.nameOf(name))
}

func (m *models) noteRole(member muster.Name, role Role) {
	if role.Note == "" {
		return
	}
	if _, isSaid := m.notes.LoadOrStore(role.Note, true); !isSaid {
		m.site.note(context.Background(), member, role.Note)
	}
}

// check refuses the name of a model that no member can have. The lead's model reads why, and can name
// another.
func (m *models) check(name string) error {
	_, err := m.open(Role{}, name)
	if err == nil {
		err = m.site.config.checkPrice(name)
	}
	if _, isOurs := errors.AsType[*muster.Error](err); err != nil && !isOurs {
		return muster.Errorf(muster.Invalid, "there is no model %q: %w", name, err)
	}
	return err
}

// tellTrouble returns what tells the journal of a trouble with a model's server that a member is the first to meet.
func (m *models) tellTrouble(name muster.Name) func(until time.Time, why error) {
	return func(until time.Time, why error) {
		m.site.emit(context.Background(), journal.ModelRetry, name,
			map[string]any{"text": why.Error(), "until": muster.UnixTime(until)})
	}
}

// counted returns what makes retries around a member's model, by how long an outage of it is waited out. tell has the
// functions that hear of them. What counts its calls stands inside of the retries: each try may be billed, and a wait
// for the limiter is no call.
func (m *models) counted(
	record muster.Member, model llm.Model, now func() (muster.TaskID, int), tell retry.Options,
) func(overload time.Duration) llm.Model {
	tell.Limiter, tell.Account = m.providers.limiters.Of(model), retry.AccountOf(model)
	tell.Patience = m.site.config.Limits.ModelPatience
	name := cmp.Or(record.Model, m.site.config.ModelName)
	caller := spend.Caller{Member: record.Name, Model: name, Now: now}
	if e, ok := model.(interface{ Endpoint() string }); ok {
		caller.Endpoint = strings.TrimPrefix(config.Stored("@"+e.Endpoint()), "@")
	}
	model = m.spending.meter.Model(model, caller, m.site.config.priceOf(name))
	return func(overload time.Duration) llm.Model {
		tell.Overload = overload
		tries := m.providers.tools.Wrap(retry.Wrap(model, tell), name, tell.OnNote)
		return openingModel{tries, name, &m.providers.openings}
	}
}

// openings lets one of several conversations that begin alike, and at the same time, ask first. A provider can read a
// beginning from its cache when the first reply to it has begun; requests that come before it write it once each, which
// costs more than ten times as much. Teammates that are spawned together would all do so. The zero value is ready.
type openings struct {
	mu     sync.Mutex
	groups map[[2]string]*opening // by the model and the group
}

// opening is a beginning that was asked with.
type opening struct {
	begun chan struct{} // closed when the first reply has begun, or failed
	used  time.Time     // for the last time
}

// How long a provider keeps a beginning at least, and how long others wait for the first reply to it: by then it has
// begun, also where nothing of it is seen because it only calls tools.
const (
	openingLives = 5 * time.Minute
	openingWait  = 5 * time.Second
)

// join notes a request that begins as those of a group do, and returns the group's opening, and whether the request is
// the one for which the others wait.
func (o *openings) join(group [2]string) (g *opening, isFirst bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if g = o.groups[group]; g == nil || time.Since(g.used) > openingLives {
		g, isFirst = &opening{begun: make(chan struct{})}, true
		if o.groups == nil {
			o.groups = map[[2]string]*opening{}
		}
		o.groups[group] = g
	}
	g.used = time.Now()
	return g, isFirst
}

// openingModel is a model, by its name, whose conversations open one before the others.
type openingModel struct {
	llm.Model
	name     string
	openings *openings
}

// Reply asks the model. Only the first request of a conversation waits: the others begin with what is theirs.
func (m openingModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	g, isFirst := m.openings.join([2]string{m.name, r.Group()})
	if isFirst {
		begin := sync.OnceFunc(func() { close(g.begun) })
		defer begin() // whatever became of it: nobody waits for a reply that failed
		return m.Model.Reply(ctx, r, func(d llm.Delta) {
			if begin(); emit != nil {
				emit(d)
			}
		})
	}
	if len(r.Messages) == 1 {
		select {
		case <-g.begun:
		case <-time.After(openingWait):
		case <-ctx.Done(): // the model says why
		}
	}
	return m.Model.Reply(ctx, r, emit)
}

// foreignGrace is how long a call of an embedder's code may go on after its context has ended. It is shorter than
// grace, so that a member whose model or tool does not heed its context still ends in order. It is longer than the five
// seconds that a member's last writes have: a write that a model's retry began just before the end is over by then.
const foreignGrace = 6 * time.Second

// callForeign runs a call of code that is not ours: of a model or of an embedder's tool. It returns what f returns, or
// the cause of ctx's end when f goes on for foreignGrace after that. Nobody reads what an abandoned f returns, so that
// it can write nothing: this is what lets a run wait for all its members without a limit.
//
// emit gets what f tells while it runs; nil drops it. When callForeign returns, a call of emit that was under way is
// over, and none follows.
func callForeign[T, V any](ctx context.Context, emit func(V), f func(emit func(V)) (T, error)) (T, error) {
	var mu sync.Mutex
	isClosed := emit == nil
	tell := func(v V) {
		mu.Lock()
		defer mu.Unlock()
		if !isClosed {
			emit(v)
		}
	}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		isClosed = true
	}()
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		value, err = f(tell)
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(foreignGrace): // an abandoned f may yet write value and err, so neither is read
			var none T
			return none, context.Cause(ctx)
		}
	}
	return value, err
}

// foreignModel is a model whose calls end soon after their context.
type foreignModel struct{ llm.Model }

// Reply asks the model. After it has returned nothing streams in any more, also where the model's call was abandoned.
func (m foreignModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	return callForeign(ctx, emit, func(emit func(llm.Delta)) (llm.Reply, error) { return m.Model.Reply(ctx, r, emit) })
}

// foreignTool is a tool whose calls end soon after their context.
type foreignTool struct{ llm.Tool }

// Run runs the tool. After it has returned no progress comes any more, also where the tool's call was abandoned.
func (t foreignTool) Run(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error) {
	return callForeign(ctx, progress, func(tell func(string)) (llm.Result, error) { return t.Tool.Run(ctx, c, tell) })
}

func foreignTools(tools []llm.Tool) []llm.Tool {
	wrapped := make([]llm.Tool, len(tools))
	for i, t := range tools {
		wrapped[i] = foreignTool{t}
	}
	return wrapped
}
