package team

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"muster"
	"muster/internal/teammate"
	"muster/llm"
	"muster/llm/retry"
)

// model returns the model that a member's record names, as a role has it, with everything around it.
func (s *supervisor) model(
	record muster.Member, role Role, now func() (muster.TaskID, int), onWait func(time.Time, error),
) (llm.Model, error) {
	var all []retry.Candidate
	for _, name := range append([]string{record.Model}, role.Fallback...) {
		asked := record
		asked.Model = name
		model, err := s.open(role, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(c retry.Candidate) bool { return c.Name == name }) {
			continue
		}
		wrap := s.spending.counted(asked, model, now, onWait, s.tellTrouble(record.Name))
		all = append(all, retry.Candidate{Name: name, Quick: wrap(retry.OverloadPatience), Patient: wrap(0)})
	}
	// The outermost: a model that its watchdog has cancelled is waited for while the member lives.
	tell := func(line string) { s.note(context.Background(), record.Name, line) }
	return foreignModel{s.Secrets.Model(retry.Fallback(&s.team.outages, tell, all...))}, nil
}

// subagent returns the model of a kind of subagents of a member, or none where it is the member's.
func (s *supervisor) subagent(
	record muster.Member, kind string, now func() (muster.TaskID, int), onWait func(time.Time, error),
) (x teammate.Subagent, err error) {
	c, role := s.config, s.config.role(kind)
	if role.Model == "" && role.Open == nil {
		return x, nil
	}
	record.Model = cmp.Or(role.Model, record.Model)
	x.Name, x.NoImages = record.Model, c.NoImages != nil && c.NoImages(c.nameOf(record.Model))
	x.MaxTokens = cmp.Or(role.MaxTokens, c.Limits.MaxTokens)
	x.Model, err = s.model(record, role, now, onWait)
	return x, err
}

func (p *runHost) open(role Role, name string) (llm.Model, error) {
	open := role.Open
	if open == nil {
		open = p.config.Model
	}
	return open(p.config.nameOf(name))
}

// noteRole says what there is to say about a role, once.
func noteRole(p *runHost, member muster.Name, role Role) {
	if role.Note == "" {
		return
	}
	if _, isSaid := p.notes.LoadOrStore(role.Note, true); !isSaid {
		p.note(context.Background(), member, role.Note)
	}
}

// checkMemberModel refuses the name of a model that no member can have. The lead's model reads why, and can name
// another.
func (p *runHost) checkMemberModel(name string) error {
	_, err := p.open(Role{}, name)
	if err == nil {
		err = p.config.checkPrice(name)
	}
	if _, isOurs := errors.AsType[*muster.Error](err); err != nil && !isOurs {
		return muster.Errorf(muster.Invalid, "there is no model %q: %w", name, err)
	}
	return err
}
