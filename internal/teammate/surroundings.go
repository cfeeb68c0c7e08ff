package teammate

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/memory"
	"muster/internal/prompt"
	"muster/internal/roles"
	"muster/internal/skills"
)

// surroundings returns what the member's model is told of its surroundings at the beginning of a conversation, as the
// two parts with which the first message begins; see prompt.Facts.Texts. The project's instructions are those of the
// user's checkout: no member can change them. A subagent has no tools for skills and teammates, and is told of none.
// What cannot be found out is left out.
func (s *self) surroundings(ctx context.Context, isSubagent bool) ([]string, error) {
	run, err := s.Run(ctx)
	if err != nil {
		return nil, err
	}
	f := prompt.Facts{Root: string(s.Home), Now: time.Now(), Check: run.CheckText(), CommandLimits: s.CommandLimits,
		Target:       strings.TrimPrefix(run.Target, "refs/heads/"),
		Instructions: s.Secrets.String(prompt.Instructions(string(s.Home), "", prompt.MaxInstructions))}
	f.Permissions = s.Permissions.Line()
	if !isSubagent {
		list, _ := skills.List(s.Skills)
		f.Skills = s.Secrets.String(list)
		if s.isLead() && run.Cap > 0 {
			f.Roles = s.Secrets.String(roles.List(s.Roles))
		}
		if s.Memory != nil {
			repository, user := s.Memory()
			f.Memory = s.Secrets.String(memory.Index(user, repository))
		}
	}
	if s.GitState != nil {
		f.Git = s.GitState(ctx)
	}
	if f.Tip, err = s.Lander.Target(ctx); err != nil {
		s.diary.dropped(ctx, "reading the target for the facts", err)
	}
	stable, now := f.Texts()
	return []string{stable, now}, nil
}

// place tells a member without a task where its tools run; of a task, the text of the task tells it.
func (s *self) place() string {
	if _, ok := s.claims.CurrentTask(); ok {
		return ""
	}
	return prompt.ScratchView(filepath.Join(s.Home.Scratch(), string(s.name())))
}
