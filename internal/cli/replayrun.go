package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/config"
	"muster/internal/recording"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/llm"
	"muster/team"
)

// replayResult is how a replay ended, as --json prints it behind the events.
type replayResult struct {
	Same       bool                  `json:"same"`
	Turns      int                   `json:"turns"` // that were played
	Of         int                   `json:"of"`    // that were recorded
	Landings   []recording.Landing   `json:"landings"`
	Divergence *recording.Divergence `json:"divergence,omitempty"`
	Text       string                `json:"text"`
}

// Event is told the events of the replay, which nobody keeps.
func (*replay) Event(muster.Event) {}

// Landing keeps a landing of the replay.
func (p *replay) Landing(l recording.Landing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.landings = append(p.landings, l)
}

// play runs the team again in a scratch repository, which is removed at the end.
func (p *replay) play(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "muster-replay-")
	if err != nil {
		return muster.Errorf(muster.Unavailable, "there is no place for the scratch repository: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over is the system's to remove
	if err := team.NewScratch(ctx, p.workDir(), dir, p.rec.Run); err != nil {
		if errors.Is(err, muster.ErrNotFound) {
			err = muster.Errorf(muster.NotFound, "%w, where the recorded run began", err).
				WithHint("replay it in the repository that was recorded:  muster -C DIR replay FILE\n" +
					"or only look at it:  muster replay --watch FILE")
		}
		return err
	}
	trusted := p.trusted(ctx)
	there := *p.App // the same program, started in the scratch repository
	there.Dir, there.dir = dir, ""
	there.Env = append(slices.Clip(p.Env), "XDG_STATE_HOME="+filepath.Join(dir, ".git", "state"))
	o, err := there.change(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	// What the user trusts in the repository counts in its copy, with just the same content, and so does what the user
	// allows there. Servers and branches are not the recording's to choose.
	err = o.workspace.Trust().Change(ctx, func(t *trust.Settings) {
		t.Trusted, t.Allowed = trusted.Trusted, trusted.Allowed
	})
	if err != nil {
		return err
	}
	j, err := p.job(o)
	if err != nil {
		return err
	}
	// The board is as it was when the recorded run began.
	if err := team.PutTasks(ctx, o.Team, p.rec.Tasks); err != nil {
		return err
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	options := recording.Options{Speed: p.speed, GoOn: p.goOn, Stop: stop}
	if p.step {
		options.Next = func(ctx context.Context, c *recording.Call) error { return p.nextTurn(ctx, c, stop) }
	}
	player := recording.Play(p.rec, options)
	go player.Watch(run)
	// Nothing rings: whoever replays sits in front of it.
	out := newRunOutput(ctx, &there, o.Team, config.Settings{Notify: "off"}, false)
	out.recorder, j.Emit, j.Tape = p, out.emit, player
	var sum team.Summary
	if err := out.during(ctx, func() { sum, err = p.Start(run, j) }); err != nil {
		return err
	}
	if cause := context.Cause(run); err != nil && cause != nil {
		err = cause
	}
	return p.report(player, sum, err)
}

// nextTurn waits until the user wants a turn to be played. Where the user ends the replay it calls stop.
func (p *replay) nextTurn(ctx context.Context, c *recording.Call, stop func(error)) error {
	if !p.step { // the input has ended
		return nil
	}
	err := p.next(ctx, fmt.Sprintf("turn %d of %s", c.Turn, strings.TrimSpace(string(c.Member)+" "+c.Of)))
	if errors.Is(err, errQuit) {
		stop(errQuit)
	}
	return err
}

// trusted returns what the user has said about the repository that was recorded, nothing where that cannot be read.
func (p *replay) trusted(ctx context.Context) trust.Settings {
	o, err := p.open(ctx)
	if err != nil {
		return trust.Settings{}
	}
	defer o.close()
	t, _ := o.workspace.Trust().Get()
	return t
}

// job returns what is to be run again.
func (p *replay) job(o opened) (Job, error) {
	s, _, err := config.Load(config.Options{})
	if err != nil {
		return Job{}, err
	}
	// What commands see and reach, and whether keys may land, is the user's to say, and no recording's.
	own, _, err := config.Load(p.configOptions(""))
	if err != nil {
		return Job{}, err
	}
	s.PassEnv, s.HoldSecrets, s.Sandbox, s.SandboxChecks = own.PassEnv, own.HoldSecrets, own.Sandbox, own.SandboxChecks
	s.SandboxRead, s.SandboxWrite = own.SandboxRead, own.SandboxWrite
	s.Processes, s.Memory, s.FileSize, s.FreeDisk = own.Processes, own.Memory, own.FileSize, own.FreeDisk
	s.SandboxNetwork, s.SandboxSetupNetwork = own.SandboxNetwork, own.SandboxSetupNetwork
	var options recordedOptions
	if err := json.Unmarshal(p.rec.Options, &options); err != nil {
		return Job{}, muster.Errorf(muster.Invalid, "the options of the recording cannot be read: %w", err)
	}
	options.apply(&s)
	// What is known of the model, such as its window, decides when a conversation is made shorter.
	s.Endpoints = config.ReadEndpoints(p.configOptions(""))
	r := p.rec.Run
	s.Check, s.Checks, s.Setup, s.Review = r.Check, r.Checks, r.Setup, r.Review
	s.Team, s.Teammates = string(r.Team), r.Cap
	if r.Target != "muster/"+string(r.Team) {
		s.Land = r.Target
	}
	return Job{Workspace: o.workspace, Settings: s, Goal: options.Goal, Plays: true,
		How: team.Start{Playbook: options.Playbook}}, nil
}

// openModel returns the model with a name.
type openModel func(w *workspace.Workspace, name string, s config.Settings) (llm.Model, error)

// silent is the model of a run that is played: nobody asks it, because its tape answers.
type silent struct{}

// modelsOf returns what opens the models of a job.
func modelsOf(a *App, j Job) openModel {
	if !j.Plays {
		return a.model
	}
	return func(*workspace.Workspace, string, config.Settings) (llm.Model, error) { return silent{}, nil }
}

// Reply is an error.
func (silent) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	return llm.Reply{}, llm.Errorf(llm.BadRequest, "a replay asks no model")
}

// report prints how the replay ended, and returns its exit code as an error.
func (p *replay) report(player *recording.Player, sum team.Summary, err error) error {
	n, of, first := player.Played()
	r := replayResult{Turns: n, Of: of, Landings: p.landings, Divergence: first}
	if r.Landings == nil {
		r.Landings = []recording.Landing{}
	}
	counts := fmt.Sprintf("%d of %s, %s", n, view.Count(of, "turn"), view.Count(len(p.landings), "landing"))
	differs := p.endDiffers(sum, n == of)
	switch {
	case first != nil:
		r.Text = muster.PlainText(first)
	case errors.Is(err, errQuit):
		r.Same, r.Text = true, "you have ended the replay; so far it came as recorded: "+counts
	case recording.IsOver(err):
		r.Same, r.Text = true, "it came as recorded, to where the recorded run was cut off: "+counts
	case err != nil:
		return err
	case differs != "":
		r.Text = "all requests came as recorded, but " + differs
	default:
		r.Same, r.Text = true, "it came as recorded: "+counts+", the same files"
	}
	if err := p.printResult(r); err != nil {
		return err
	}
	if !r.Same {
		return exitStatus(exitLeft)
	}
	return nil
}

// endDiffers says how the end of the replay differs from that of the recorded run, "" if it does not.
func (p *replay) endDiffers(sum team.Summary, isWhole bool) string {
	was := landingFiles(p.rec.Landings)
	now := landingFiles(p.landings)
	switch {
	case p.rec.End != nil && p.rec.End.Code != sum.Code:
		return fmt.Sprintf("the exit code is %d and was %d", sum.Code, p.rec.End.Code)
	case !isWhole:
		return "the run was over before the last recorded turn"
	case !slices.Equal(was, now):
		return fmt.Sprintf("other files have landed.\nrecorded:\n%s\nnow:\n%s", strings.Join(was, "\n"),
			strings.Join(now, "\n"))
	}
	return ""
}

// landingFiles returns for each landing its task and its files.
func landingFiles(all []recording.Landing) (texts []string) {
	for _, l := range all {
		texts = append(texts, fmt.Sprintf("  task %d: %s", l.Task, strings.Join(l.Files, ", ")))
	}
	return texts
}

// printResult prints the landings, and how the replay ended. A difference is shown with both texts.
func (p *replay) printResult(r replayResult) error {
	if p.json {
		line, err := muster.MarshalLine(map[string]replayResult{"replay": r})
		if err == nil {
			_, err = p.Stdout.Write(append(line, '\n'))
		}
		return ignoreEPIPE(err)
	}
	text := r.Text + "\n"
	if d := r.Divergence; d != nil && d.Turn > 0 {
		text += fmt.Sprintf("\nrecorded:\n%s\n\nnow:\n%s\n\nthe turns before it: %d\n"+
			"go on with what was recorded:  muster replay --go-on FILE\nsee both texts whole:          "+
			"muster replay --json FILE\n", excerpt(d.Recorded, d.At), excerpt(d.Now, d.AtNow), max(r.Turns-1, 0))
	}
	_, err := fmt.Fprint(p.Stdout, landingLines(r.Landings), view.ManyLines(text))
	return ignoreEPIPE(err)
}

// excerpt returns the lines of a text around a place, with a mark before that.
func excerpt(text string, at int) string {
	const before, behind = 200, 300
	at = min(at, len(text))
	from, to := max(0, at-before), min(len(text), at+behind)
	if i := strings.IndexByte(text[from:at], '\n'); from > 0 && i >= 0 {
		from += i + 1
	}
	marked := strings.ToValidUTF8(text[from:at]+">>>"+text[at:to], "")
	return "  | " + strings.ReplaceAll(marked, "\n", "\n  | ")
}
