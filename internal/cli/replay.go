package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/clock"
	"muster/internal/recording"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/journal"
)

// replay is muster replay with its flags.
type replay struct {
	runCommands
	path                  string
	watch, step, goOn, ok bool
	speed                 float64
	rec                   *recording.Recording
	mu                    sync.Mutex          // guards landings while the replay goes on
	landings              []recording.Landing // of the replay
	lines                 *bufio.Reader       // of standard input, for --step
}

// replay returns muster replay.
func (r runCommands) replay() *cobra.Command {
	p := &replay{runCommands: r}
	c := &cobra.Command{Use: "replay FILE", Short: "play a recorded run again, without a model and without a network",
		Args: namedArgs("FILE"),
		Long: "The models say what they said, and git, tools, checks and landings are real, in a scratch repository\n" +
			"that is removed at the end. The first difference from the recording is shown with both texts.\n" +
			"Run it in the repository that was recorded, which has the commit where the run began.\n\n" +
			"A recording that you have not made runs somebody else's commands: they are shown first.\n\n" +
			"Exits 0 when all came as recorded, 3 when something did not."}
	f := c.Flags()
	f.BoolVar(&p.watch, "watch", false, "only show what happened; nothing is run")
	f.Float64Var(&p.speed, "speed", 10, "how many times as fast as recorded; 0 does not wait")
	f.BoolVar(&p.step, "step", false, "wait for a line of input before each turn; q ends the replay")
	f.BoolVar(&p.goOn, "go-on", false, "go on after a difference, with what was recorded")
	f.BoolVar(&p.ok, "yes", false, "run the commands of a recording that you have not made")
	c.RunE = func(c *cobra.Command, args []string) error {
		if p.speed < 0 || p.speed != p.speed {
			return &usageError{c.CommandPath(), "--speed is 0 or more"}
		}
		if p.watch && (p.goOn || p.ok) {
			return &usageError{c.CommandPath(), "--watch runs nothing: leave --go-on and --yes out"}
		}
		if p.path = args[0]; !filepath.IsAbs(p.path) {
			p.path = filepath.Join(r.workDir(), p.path)
		}
		p.lines = bufio.NewReader(r.Stdin)
		return p.run(c.Context())
	}
	return c
}

// run reads the recording, and shows or plays it.
func (p *replay) run(ctx context.Context) error {
	var key []byte
	var err error
	if !p.watch { // to look needs no key, and makes none
		if key, err = trust.Open(p.env).RecordingKey(ctx); err != nil {
			return err
		}
	}
	if p.rec, err = recording.Read(p.path, recording.Verify(key)); err != nil {
		return err
	}
	if p.watch {
		return p.show(ctx)
	}
	if !p.rec.IsOwn && !p.ok {
		fmt.Fprintf(p.Stderr, "You have not made this recording, or its run was killed. To play it runs with your "+
			"rights:\n\n")
		for _, line := range p.rec.Commands() {
			fmt.Fprintln(p.Stderr, "  "+view.OneLine(line))
		}
		fmt.Fprintln(p.Stderr)
		hint := "look at it:  muster replay --watch FILE\nplay it:     muster replay --yes FILE"
		if err := confirm(ctx, p.App, "run this", hint); err != nil {
			return err
		}
	}
	return p.play(ctx)
}

// show draws what happened, as a run does. It runs nothing.
func (p *replay) show(ctx context.Context) error {
	if p.json {
		for _, e := range p.rec.Events {
			if err := writeEvent(p.Stdout, e); err != nil {
				return ignoreEPIPE(err)
			}
		}
		return nil
	}
	subjects := map[muster.TaskID]string{}
	begin := time.Unix(0, int64(p.rec.Run.StartedAt*1e9))
	print := func(text string) { _, _ = io.WriteString(p.Stderr, text) } // nobody may read it any more
	progress := view.NewProgress(view.Options{Print: print, Screen: liveScreen(p.App), Start: begin,
		Check: p.rec.Run.Check, Task: func(id muster.TaskID) (muster.Task, error) {
			return muster.Task{ID: id, Subject: subjects[id]}, nil
		}})
	at := p.rec.Run.StartedAt
	for _, e := range p.rec.Events {
		if s := e.Text("subject"); s != "" {
			subjects[e.Task] = s
		}
		if pause := e.At - at; p.speed > 0 && pause > 0 {
			if clock.Sleep(ctx, time.Duration(pause/p.speed*float64(time.Second))) != nil {
				return context.Cause(ctx)
			}
		}
		at = max(at, e.At)
		progress.Event(e)
		progress.Tick(time.Unix(0, int64(at*1e9)))
		if p.step && e.Kind == journal.TurnStarted {
			if err := p.next(ctx, "a turn of "+string(e.Member)); err != nil {
				return err
			}
		}
	}
	progress.Close()
	end := "the run was cut off"
	if p.rec.End != nil {
		end = fmt.Sprintf("the run ended with exit code %d", p.rec.End.Code)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s\n%s, %s, %s\n", landingLines(p.rec.Landings),
		view.Count(len(p.rec.Calls), "turn"), view.Count(len(p.rec.Landings), "landing"), end)
	return ignoreEPIPE(err)
}

// errQuit is the error of a replay that the user has ended.
var errQuit = errors.New("you have ended the replay")

// next waits for a line of input before a turn. The end of the input ends the waits.
func (p *replay) next(ctx context.Context, what string) error {
	fmt.Fprintf(p.Stderr, "next: %s [Enter, q] ", view.OneLine(what))
	read := make(chan string, 1)
	// Where ctx ends first the program ends, so the read that still waits does no harm.
	go func() {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.step = false
		}
		read <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-read:
		fmt.Fprintln(p.Stderr)
		if line == "q" {
			return errQuit
		}
		return nil
	}
}

// landingLines lists landings with their files, a line for each.
func landingLines(all []recording.Landing) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "#%d %s (%.7s): %s\n", l.Task, view.OneLine(l.Subject), view.OneLine(l.Commit),
			view.OneLine(strings.Join(l.Files, ", ")))
	}
	return b.String()
}
