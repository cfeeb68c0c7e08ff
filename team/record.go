package team

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
)

// runs is the run's record: .team/run.json.
type runs struct {
	table  muster.Table
	teller *corruption.Teller
}

func newRuns(s muster.Store, log *slog.Logger) runs {
	j := journal.New(s.Log())
	j.Logger = log
	return runs{s.Table(muster.TableTeam), corruption.New(s.Log(), s.Inbox(), j)}
}

const runKey = "run"

// get returns the run under way, or the last one; the zero Run when there was none.
func (r runs) get(ctx context.Context) (muster.Run, error) {
	run, _, err := r.read(ctx)
	return run, err
}

// look is get for a start that may be refused: what is damaged is said by the refusal alone, and nothing is written.
func (r runs) look(ctx context.Context) (muster.Run, error) {
	run, _, err := runs{table: r.table}.read(ctx)
	return run, err
}

func (r runs) read(ctx context.Context) (run muster.Run, rev muster.Rev, err error) {
	doc, err := r.table.Get(ctx, runKey)
	if errors.Is(err, muster.ErrNotFound) {
		return run, muster.None, nil
	}
	if err == nil {
		err = json.Unmarshal(doc.Data, &run)
	} else if !errors.Is(err, muster.ErrCorrupt) {
		return run, rev, err
	}
	if err != nil {
		var told error
		if r.teller != nil {
			told = r.teller.Tell(ctx, corruption.Record{Table: muster.TableTeam, Key: runKey, Rev: doc.Rev,
				Text: "the run's record (run.json) cannot be read: " + err.Error()})
		}
		return run, rev, errors.Join(muster.Errorf(muster.Corrupt, "the run's record (.team/run.json) cannot be read: %w", err).
			WithHint("mend the file, or move it away: muster doctor says what is lost then"), told)
	}
	return run, doc.Rev, nil
}

// change applies f to the record; put at a revision, again while somebody else was faster.
func (r runs) change(ctx context.Context, f func(*muster.Run)) (muster.Run, error) {
	for {
		run, rev, err := r.read(ctx)
		if err != nil {
			return run, err
		}
		f(&run)
		data, err := muster.Encode(run)
		if err != nil {
			return run, err
		}
		if _, err = r.table.Put(ctx, runKey, data, rev); !errors.Is(err, muster.ErrStale) {
			return run, err
		}
	}
}

// baseState returns what the check said of the base, "" when it has not run yet. A record that cannot be read is an
// error, and does not mean that.
func (r runs) baseState(ctx context.Context) (string, error) {
	run, err := r.get(ctx)
	return run.BaseCheck, err
}

func (r runs) setBaseState(ctx context.Context, s string) error {
	_, err := r.change(ctx, func(run *muster.Run) {
		if run.BaseCheck != baseGreen { // once green, no landing may make it red
			run.BaseCheck = s
		}
	})
	return err
}
