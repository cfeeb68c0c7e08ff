package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/spend"
	"muster/internal/teammate"
	"muster/journal"
	"muster/llm"
	"muster/llm/retry"
)

// spending is a process's part in what its run spends.
type spending struct {
	*runHost
	meter *spend.Meter // set by open
}

// open makes what counts the calls of this process. The run's record is written by then.
func (s *spending) open(ctx context.Context, host muster.HostID) error {
	run, err := s.Run(ctx)
	if err != nil {
		return err
	}
	budgets, err := s.config.budgets()
	if err != nil {
		return err
	}
	detached := context.WithoutCancel(ctx)
	o := spend.Options{Log: s.Store.Log(), Run: run.StartedAt, Host: host, Budgets: budgets, Warn: s.warn,
		Failed: func(err error) { logDropped(detached, s.Log, "noting what a call has cost", err) }}
	if budgets.Day != (spend.Budget{}) {
		o.Day = &spend.Day{Log: s.config.DayLog}
	}
	s.meter = spend.NewMeter(o)
	// Before the first call: what dead processes have begun counts, too.
	return s.meter.CutOff(ctx, s.Roster.Alive)
}

// warn tells the user and the lead that most of a budget is spent.
func (s *spending) warn(ctx context.Context, e *spend.Exceeded) {
	text := e.Warning()
	s.tell(ctx, journal.BudgetWarned, e, text)
	// News wakes no model: that would cost more.
	_, err := s.Post.Send(ctx, muster.Message{Type: muster.MailResult, From: muster.System, To: muster.Lead,
		Content: text + ". When it is spent, work stops: finish what is begun before you begin more."})
	logDropped(ctx, s.Log, "telling the lead of a budget", err)
}

func (s *spending) tell(ctx context.Context, kind string, e *spend.Exceeded, text string) {
	s.emit(ctx, kind, e.Member, map[string]any{"text": text, "scope": string(e.Scope), "budget": e.Budget.String()})
}

// counted returns what makes retries around a member's model, by how long an outage of it is waited out. What counts
// its calls stands inside of the retries: each try may be billed, and a wait for the limiter is no call.
func (s *spending) counted(
	record muster.Member, model llm.Model, now func() (muster.TaskID, int), onWait, onTrouble func(time.Time, error),
) func(overload time.Duration) llm.Model {
	limiter, account := s.team.limiters.Of(model), retry.AccountOf(model)
	name := cmp.Or(record.Model, s.config.ModelName)
	caller := spend.Caller{Member: record.Name, Model: name, Now: now}
	if e, ok := model.(interface{ Endpoint() string }); ok {
		caller.Endpoint = strings.TrimPrefix(config.Stored("@"+e.Endpoint()), "@")
	}
	model = s.meter.Model(model, caller, s.config.priceOf(name))
	return func(overload time.Duration) llm.Model {
		tries := retry.Wrap(model, retry.Options{Limiter: limiter, Account: account, OnWait: onWait,
			OnTrouble: onTrouble, Patience: s.config.Limits.ModelPatience, Overload: overload})
		return openingModel{tries, name, &s.team.openings}
	}
}

func exceeded(err error) (*spend.Exceeded, bool) {
	if _, isStop := errors.AsType[*teammate.TeamStop](err); !isStop {
		return nil, false
	}
	return spend.IsExceeded(err)
}

// awaitQuiet waits, because a budget of the whole team is spent, until every member that lives here has come to its
// next call, is idle, or waits: what was paid for is used. The named member has come to its next call.
func (s *supervisor) awaitQuiet(ctx context.Context, name muster.Name, e *spend.Exceeded) {
	if !e.StopsTeam() {
		return
	}
	s.mu.Lock()
	s.stopped[name] = true
	s.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := s.Roster.Watch(ctx)
	for {
		members, err := s.Roster.List(ctx)
		s.mu.Lock()
		isBusy := slices.ContainsFunc(members, func(m muster.Member) bool {
			return m.Host == s.id && m.Status == muster.Working && m.Doing == "" && !s.stopped[m.Name]
		})
		s.mu.Unlock()
		if err == nil && !isBusy {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed: // the last one that comes to its next call looks by itself
		case <-time.After(s.config.Limits.IdlePoll):
		}
	}
}

// earlier returns what landed tasks of earlier runs have cost here: the median, and of how many. It is "" where fewer
// than three are known with their whole price.
func (s *spending) earlier(ctx context.Context) string {
	tasks, err := s.Board.List(ctx)
	var costs []spend.Dollars
	if err == nil {
		err = spend.NewLedger(s.Store.Log(), muster.StreamSpend, nil).Look(ctx, func(b *spend.Book) {
			for _, t := range tasks {
				if sum := b.Tasks[t.ID]; t.Landed != nil && sum.Dollars > 0 && sum.Unpriced == 0 {
					costs = append(costs, sum.Dollars)
				}
			}
		})
	}
	logDropped(ctx, s.Log, "looking what earlier tasks have cost", err)
	if len(costs) < 3 {
		return ""
	}
	slices.Sort(costs)
	return fmt.Sprintf("a task that landed here has cost %v (the median of %d)", costs[len(costs)/2], len(costs))
}
