package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"muster/internal/text"
	"muster/llm"
)

// Tools knows which optional tools the servers of models refuse. All members of a process share one. The zero value is
// ready.
type Tools struct {
	mu      sync.Mutex
	refused map[string][]string // by the name of the model
}

// Wrap returns m with its name. A request that is refused because of optional tools is made again without them. If that
// succeeds, later requests leave them out too, and tell gets a line for each tool, once.
func (t *Tools) Wrap(m llm.Model, name string, tell func(line string)) llm.Model {
	return toolsModel{m, t, name, tell}
}

// toolsModel implements llm.Model.
type toolsModel struct {
	model llm.Model
	tools *Tools
	name  string
	tell  func(line string)
}

// Reply asks the model.
func (m toolsModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	m.tools.mu.Lock()
	refused := slices.Clone(m.tools.refused[m.name])
	m.tools.mu.Unlock()
	all := r.Tools
	var reason *llm.Error // the last that a tool was left out for
	for {
		r.Tools = all
		if len(refused) > 0 {
			isRefused := func(s llm.Spec) bool { return slices.Contains(refused, s.Name) }
			r.Tools = slices.DeleteFunc(slices.Clone(all), isRefused)
		}
		reply, err := m.model.Reply(ctx, r, emit)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.BadRequest {
			if reason != nil {
				m.note(refused, reason)
			}
			return reply, err
		}
		before := len(refused)
		for _, name := range e.Tools {
			if !slices.Contains(refused, name) {
				refused = append(refused, name)
			}
		}
		if len(refused) == before {
			return reply, err
		}
		reason = e
	}
}

// note keeps what was left out of a request that was taken.
func (m toolsModel) note(refused []string, reason *llm.Error) {
	m.tools.mu.Lock()
	defer m.tools.mu.Unlock()
	var added []string
	for _, name := range refused {
		if !slices.Contains(m.tools.refused[m.name], name) {
			added = append(added, name)
		}
	}
	if len(added) == 0 {
		return
	}
	if m.tools.refused == nil {
		m.tools.refused = map[string][]string{}
	}
	m.tools.refused[m.name] = slices.Concat(m.tools.refused[m.name], added)
	m.tell(fmt.Sprintf("%s is asked without %s %s, because of which its server refused a request: %v", m.name,
		text.Plural(len(added), "the tool", "the tools"), text.List(added, 5), reason.Err))
}
