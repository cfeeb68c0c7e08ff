package workspace

import (
	"context"
	"encoding/json"
	"errors"

	"muster"
	"muster/internal/corruption"
	"muster/internal/landing"
)

// Runs is the record of the run under way, or of the last one: .team/run.json.
type Runs struct {
	table  muster.Table
	teller *corruption.Teller
}

const runKey = "run"

// Get returns the run under way, or the last one, and the zero Run when there was none. The error is Corrupt when the
// record cannot be read; the lead is told then.
func (r *Runs) Get(ctx context.Context) (muster.Run, error) {
	run, _, err := r.load(ctx)
	return run, err
}

// Look is Get for those who only look, and for a start that may be refused: it writes nothing.
func (r *Runs) Look(ctx context.Context) (muster.Run, error) {
	run, _, err := r.read(ctx)
	return run, err
}

// Change applies f to the record and returns the result. It calls f again when another process was faster.
func (r *Runs) Change(ctx context.Context, f func(*muster.Run)) (muster.Run, error) {
	for {
		run, rev, err := r.load(ctx)
		if err != nil {
			return run, err
		}
		f(&run)
		data, err := muster.Encode(run)
		if err != nil {
			return run, err
		}
		// Put refuses a record that has changed since it was read, so that no change of another process is lost.
		if _, err = r.table.Put(ctx, runKey, data, rev); !errors.Is(err, muster.ErrStale) {
			return run, err
		}
	}
}

// load returns the record and its revision. Where it cannot be read, the lead and the journal are told.
func (r *Runs) load(ctx context.Context) (muster.Run, muster.Rev, error) {
	run, rev, err := r.read(ctx)
	if errors.Is(err, muster.ErrCorrupt) {
		err = errors.Join(err, r.teller.Tell(ctx, corruption.Record{Table: muster.TableTeam, Key: runKey, Rev: rev,
			Text: "the run's record (run.json) cannot be read: " + muster.PlainText(errors.Unwrap(err))}))
	}
	return run, rev, err
}

// read returns the record and its revision. It writes nothing.
func (r *Runs) read(ctx context.Context) (run muster.Run, rev muster.Rev, err error) {
	doc, err := r.table.Get(ctx, runKey)
	if errors.Is(err, muster.ErrNotFound) {
		return run, muster.None, nil
	}
	// A document that the engine cannot read and one that is no run are the same to callers. What else fails, such as
	// a disk, says nothing of the record.
	if err == nil {
		err = json.Unmarshal(doc.Data, &run)
	} else if !errors.Is(err, muster.ErrCorrupt) {
		return run, doc.Rev, err
	}
	if err != nil {
		err = muster.Errorf(muster.Corrupt, "the run's record (.team/run.json) cannot be read: %w", err).
			WithHint("mend the file, or move it away: muster doctor says what is lost then")
	}
	return run, doc.Rev, err
}

// What the record says of the check on the target. The empty string means that it has not run yet.
const (
	BaseGreen = landing.BaseGreen
	BaseRed   = landing.BaseRed
)

// CheckState records what the check on the target has said, "" to record nothing, and returns what was known
// before. Once it was green, no landing may make it red. landing.ForgetBase forgets it.
// The error is Corrupt when the record cannot be read: that must not mean that nothing is known, or the base would be
// checked again.
func (r *Runs) CheckState(ctx context.Context, said string) (before string, err error) {
	run, err := r.Get(ctx)
	if err != nil || said == "" || run.BaseCheck == said || run.BaseCheck == BaseGreen && said != landing.ForgetBase {
		return run.BaseCheck, err
	}
	_, err = r.Change(ctx, func(run *muster.Run) {
		if said == landing.ForgetBase {
			run.BaseCheck = ""
			return
		}
		// A check that runs late, on an older tip, must not turn green to red: red landings would be accepted again.
		if run.BaseCheck != BaseGreen {
			run.BaseCheck = said
		}
	})
	return run.BaseCheck, err
}

// Tips returns where the run's target may be, after change was applied to it; a nil change only reads. There are none
// when the target is not the run's, or when the record is an earlier version's.
func (r *Runs) Tips(
	ctx context.Context, target string, change func([]muster.Tip) []muster.Tip,
) ([]muster.Tip, error) {
	run, err := r.Look(ctx)
	if err != nil || run.Target != target || len(run.Tips) == 0 {
		return nil, err
	}
	if change == nil {
		return run.Tips, nil
	}
	run, err = r.Change(ctx, func(run *muster.Run) {
		if run.Target == target {
			run.Tips = change(run.Tips)
		}
	})
	return run.Tips, err
}
