package team

import (
	"context"
	"sync"
	"time"

	"muster/llm"
)

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
