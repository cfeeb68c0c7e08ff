package teammate

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"muster"
	"muster/internal/memory"
	"muster/internal/tool/agent"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

func (s *self) memoryTools() []llm.Tool {
	if s.Memory == nil {
		return nil
	}
	return []llm.Tool{agent.MemoryTool(s.saveMemory)}
}

// saveMemory saves what the member's model wants later runs to know, for this repository. The head says who has saved
// it, and which of it a tool had printed.
func (s *self) saveMemory(ctx context.Context, m memory.Memory) (string, error) {
	run, err := s.Run(ctx)
	if err != nil {
		return "", err
	}
	t, _ := s.claims.CurrentTask()
	if m.Name = s.Secrets.String(m.Name); len(m.Name) <= 32 { // a longer one would be cut to what may be another's
		m.Name = cmp.Or(string(muster.Slug(m.Name, "")), m.Name)
	}
	m.Description, m.Content = s.Secrets.String(m.Description), s.Secrets.String(m.Content)
	m.By, m.Task, m.Run = string(s.name()), t.ID, s.Secrets.String(run.Goal)
	if m = m.Clean(); m.Check() != nil { // before the whole conversation is read
		return "", m.Check()
	}
	if m, err = s.withOrigins(ctx, m); err != nil {
		return "", err
	}
	dir, _ := s.Memory()
	replaced, err := dir.Save(ctx, m)
	if err != nil {
		return "", err
	}
	s.presence.event(ctx, journal.MemorySaved, map[string]any{"name": m.Name, "type": m.Type, "text": m.Description})
	text := "Saved as " + m.Name + "."
	if replaced != "" {
		text += " The text that was there is kept in " + replaced + "."
	}
	if len(m.Origins) > 0 {
		text += " What a tool had printed is marked as such."
	}
	return text, nil
}

// withOrigins marks in a memory what the tools of the member have returned. It reads the whole transcript: what was
// cleared from the conversation since, or went into a summary, was printed all the same.
func (s *self) withOrigins(ctx context.Context, m memory.Memory) (memory.Memory, error) {
	sources, calls := memory.NewSources(m), map[string]string{}
	for e, err := range transcript.Read(ctx, s.Store.Log(), s.name(), 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return m, err
		}
		if err != nil || e.Message == nil {
			continue
		}
		for _, p := range e.Message.Parts {
			switch p := p.(type) {
			case llm.Call:
				calls[p.ID] = strings.TrimSuffix(p.Name+": "+Gist(p), ": ")
			case llm.Result:
				sources.Add(calls[p.ID], p.Text())
			}
		}
	}
	return sources.Memory(), nil
}
