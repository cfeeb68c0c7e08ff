package team

import (
	"context"
	"errors"

	"muster"
	"muster/internal/spend"
	"muster/internal/teammate"
	"muster/journal"
)

// spending is a process's part in what its run spends.
type spending struct {
	site  *site
	meter *spend.Meter // set by open
}

// open makes what counts the calls of this process. The run's record is written by then.
func (s *spending) open(ctx context.Context, host muster.HostID) error {
	run, err := s.site.runs.Get(ctx)
	if err != nil {
		return err
	}
	budgets, err := s.site.config.budgets()
	if err != nil {
		return err
	}
	detached := context.WithoutCancel(ctx)
	o := spend.Options{Log: s.site.config.Store.Log(), Run: run.StartedAt, Host: host, Budgets: budgets, Warn: s.warn,
		Failed: func(err error) { logDropped(detached, s.site.log, "noting what a call has cost", err) }}
	if budgets.Day != (spend.Budget{}) {
		o.Day = &spend.Day{Log: s.site.config.DayLog}
	}
	s.meter = spend.NewMeter(o)
	// Before the first call: what dead processes have begun counts, too.
	return s.meter.CutOff(ctx, s.site.roster.Alive)
}

func (s *spending) warn(ctx context.Context, e *spend.Exceeded) {
	text := e.Warning()
	s.tell(ctx, journal.BudgetWarned, e, text)
	// News wakes no model: that would cost more.
	_, err := s.site.post.Send(ctx, muster.Message{Type: muster.MailResult, From: muster.System, To: muster.Lead,
		Content: text + ". When it is spent, work stops: finish what is begun before you begin more."})
	logDropped(ctx, s.site.log, "telling the lead of a budget", err)
}

func (s *spending) tell(ctx context.Context, kind string, e *spend.Exceeded, text string) {
	s.site.emit(ctx, kind, e.Member,
		map[string]any{"text": text, "scope": string(e.Scope), "budget": e.Budget.String()})
}

func exceeded(err error) (*spend.Exceeded, bool) {
	if _, isStop := errors.AsType[*teammate.TeamStop](err); !isStop {
		return nil, false
	}
	return spend.IsExceeded(err)
}
