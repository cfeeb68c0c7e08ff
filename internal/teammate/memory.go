package teammate

import (
	"cmp"
	"context"

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
// it, and whether the member had read the output of a tool by then.
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
	m.SawOutput = s.sawOutput(ctx)
	dir, _ := s.Memory()
	replaced, err := dir.Save(ctx, m)
	if err != nil {
		return "", err
	}
	s.diary.event(ctx, journal.MemorySaved, map[string]any{"name": m.Name, "type": m.Type, "text": m.Description})
	text := "Saved as " + m.Name + "."
	if replaced != "" {
		text += " The text that was there is kept in " + replaced + "."
	}
	if m.SawOutput {
		text += " It is marked as saved after output of tools."
	}
	return text, nil
}

// sawOutput reports whether a tool of the member has returned anything. It reads the transcript, not the conversation:
// what was cleared from that since, or went into a summary, was read all the same.
func (s *self) sawOutput(ctx context.Context) bool {
	for e, err := range transcript.Read(ctx, s.Store.Log(), s.name(), 0) {
		if err != nil || e.Kind == transcript.KindResult { // what cannot be read may be a result
			return true
		}
	}
	return false
}
