package teammate

import (
	"cmp"
	"context"

	"muster"
	"muster/internal/memory"
	"muster/internal/redact"
	"muster/internal/tool/agent"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

type memories struct {
	claims  *claims
	dirs    func() (repository, user memory.Dir) // nil: nothing is remembered
	log     muster.Log
	secrets *redact.Secrets
}

func (k *memories) tools() []llm.Tool {
	if k.dirs == nil {
		return nil
	}
	return []llm.Tool{agent.MemoryTool(k.save)}
}

// save saves a memory for later runs in this repository. Its head says who has saved it, and whether the member had
// read the output of a tool by then.
func (k *memories) save(ctx context.Context, m memory.Memory) (string, error) {
	run, err := k.claims.run(ctx)
	if err != nil {
		return "", err
	}
	t, _ := k.claims.CurrentTask()
	if m.Name = k.secrets.String(m.Name); len(m.Name) <= 32 { // a longer one would be cut to what may be another's
		m.Name = cmp.Or(string(muster.Slug(m.Name, "")), m.Name)
	}
	m.Description, m.Content = k.secrets.String(m.Description), k.secrets.String(m.Content)
	m.By, m.Task, m.Run = string(k.claims.name), t.ID, k.secrets.String(run.Goal)
	if m = m.Clean(); m.Check() != nil { // before the whole conversation is read
		return "", m.Check()
	}
	m.SawOutput = k.sawOutput(ctx)
	dir, _ := k.dirs()
	replaced, err := dir.Save(ctx, m)
	if err != nil {
		return "", err
	}
	k.claims.diary.event(ctx, journal.MemorySaved, map[string]any{"name": m.Name, "type": m.Type, "text": m.Description})
	text := "Saved as " + m.Name + "."
	if replaced != "" {
		text += " The text that was there is kept in " + replaced + "."
	}
	if m.SawOutput {
		text += " It is marked as saved after output of tools."
	}
	return text, nil
}

// sawOutput reports whether a tool has returned anything, also what was cleared from the conversation since.
func (k *memories) sawOutput(ctx context.Context) bool {
	for e, err := range transcript.Read(ctx, k.log, k.claims.name, 0) {
		if err != nil || e.Kind == transcript.KindResult { // what cannot be read may be a result
			return true
		}
	}
	return false
}
