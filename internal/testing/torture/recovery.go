package torture

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/testing/faultinject"
	"muster/journal"
)

// atWork are members in the middle of a command that does not end.
const atWork = `
speakers:
  lead:
    - do: [{wait: {}}]
      until: All done
scenes:
  - cue: 'Task #\d+: work'
    who: [coder]
    turns:
      - do: [{bash: {command: sleep 300}}]
      - do: [{bash: {command: sleep 300}}]
      - do: [{bash: {command: sleep 300}}]
      - do: [{bash: {command: sleep 300}}]
      - do: [{bash: {command: sleep 300}}]
`

// most is how long a board of a thousand tasks and twenty members may take until all are at work again.
const most = 2 * time.Second

// recovery kills and resumes a team of twenty members, all in the middle of a command, with a board of a thousand
// tasks. It measures the time from the start of the program until every member has called its model again.
func recovery(ctx context.Context, a *env) error {
	const tasks, members = 1000, 20
	if err := a.repository(); err != nil {
		return err
	}
	for id := 1; id <= tasks; id++ {
		t := muster.Task{ID: muster.TaskID(id), Subject: "work", Status: muster.Pending}
		if id > members {
			t.Subject, t.ClaimRole = "later", "nobody"
		}
		if err := a.write(t); err != nil {
			return err
		}
	}
	if err := os.WriteFile(a.at("words.yaml"), []byte(atWork), 0o600); err != nil {
		return err
	}
	w := &teamRepo{a, a, a.dir}
	if code, said := w.muster(ctx, "", "adopt", "--yes"); code != 0 {
		return muster.Errorf(muster.Unavailable, "the board cannot be adopted: %s", said)
	}
	for i := range members {
		if code, said := w.muster(ctx, "", "team", "spawn", fmt.Sprintf("m%d", i+1), "--role", "coder"); code != 0 {
			return muster.Errorf(muster.Unavailable, "no member can be spawned: %s", said)
		}
	}
	a.row.Operations = tasks
	start := append(w.run()[:2:2], "--model", "script/"+w.at("words.yaml"), "--team", "x", "--teammates",
		fmt.Sprint(members))
	if _, err := w.until(ctx, members, start...); err != nil {
		return err
	}
	for range 3 {
		took, err := w.until(ctx, members, "resume", "--teammates", fmt.Sprint(members))
		if err != nil {
			return err
		}
		a.row.Kills++
		a.times = append(a.times, took)
		if took > most && !a.Untimed {
			a.fail(&a.row.Stuck, "the team was at work again after %.2f s, later than %s", took.Seconds(), most)
		}
	}
	return nil
}

// until starts the program, kills it when so many members run a command, and returns how long it took until all of them
// had asked their model.
func (w *teamRepo) until(ctx context.Context, members int, args ...string) (time.Duration, error) {
	var out strings.Builder
	cmd := exec.CommandContext(ctx, w.Muster[0], slices.Concat(w.Muster[1:], args)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w.root(), w.Env, &out, &out, 5*time.Second
	if w.List != "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], faultinject.Variable+"=list:"+w.List)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(stuckAfter)
	for {
		asked, busy, last := map[muster.Name]bool{}, map[muster.Name]bool{}, time.Time{}
		for e := range w.events() {
			at := muster.Time(e.At)
			if at.Before(began) || e.Member == muster.Lead {
				continue
			}
			switch e.Kind {
			case journal.TurnStarted:
				if !asked[e.Member] && at.After(last) {
					last = at
				}
				asked[e.Member] = true
			case journal.ToolStarted:
				busy[e.Member] = true
			}
		}
		if len(asked) >= members && len(busy) >= members {
			return last.Sub(began), nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return 0, muster.Errorf(muster.Unavailable, "muster %s ended before all were at work (%s): %s",
				strings.Join(args, " "), filepath.Base(w.dir), out.String())
		case <-late:
			return 0, muster.Errorf(muster.Unavailable, "muster %s: after %s %d of %d members are at work",
				strings.Join(args, " "), stuckAfter, len(busy), members)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
