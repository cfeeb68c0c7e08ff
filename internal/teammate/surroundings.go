package teammate

import (
	"context"
	"strings"
	"time"

	"muster"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/roles"
	"muster/internal/skills"
)

// surroundings are what models are told of where they work.
type surroundings struct {
	home          paths.Dir
	scratch       string // the path of the member's scratch checkout
	isLead        bool
	run           func(context.Context) (muster.Run, error)
	lander        Lander
	gitState      func(context.Context) string
	commandLimits string
	permissions   string
	skills        []skills.Skill
	roles         []roles.Role
	memory        func() (repository, user memory.Dir)
	secrets       *redact.Secrets
	tasks         holder
	diary         *diary
}

// texts returns what a model is told at the beginning of a conversation; see prompt.Facts.Texts. The project's
// instructions are those of the user's checkout: no member can change them. A subagent is told of no skills and
// teammates. What cannot be found out is left out.
func (s *surroundings) texts(ctx context.Context, isSubagent bool) ([]string, error) {
	run, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	f := prompt.Facts{Root: string(s.home), Now: time.Now(), Check: run.CheckText(), CommandLimits: s.commandLimits, Permissions: s.permissions,
		Target:       strings.TrimPrefix(run.Target, "refs/heads/"),
		Instructions: s.secrets.String(prompt.Instructions(string(s.home), "", prompt.MaxInstructions))}
	if !isSubagent {
		list, _ := skills.List(s.skills)
		f.Skills = s.secrets.String(list)
		if s.isLead && run.Cap > 0 {
			f.Roles = s.secrets.String(roles.List(s.roles))
		}
		if s.memory != nil {
			repository, user := s.memory()
			f.Memory = s.secrets.String(memory.Index(user, repository))
		}
	}
	if s.gitState != nil {
		f.Git = s.gitState(ctx)
	}
	if f.Tip, err = s.lander.Target(ctx); err != nil {
		s.diary.dropped(ctx, "reading the target for the facts", err)
	}
	stable, now := f.Texts()
	return []string{stable, now}, nil
}

// place tells a member without a task where its tools run; of a task, the text of the task tells it.
func (s *surroundings) place() string {
	if _, ok := s.tasks.CurrentTask(); ok {
		return ""
	}
	return prompt.ScratchView(s.scratch)
}
