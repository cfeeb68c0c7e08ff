package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"muster/internal/face"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// status is what muster status prints of a team.
type status struct {
	view.Overview
	// Stopped is why the team has stopped before the end of its run; "" where it has not, or where Run says it.
	Stopped string `json:"stopped,omitempty"`
	// Untaken is what has landed that the user's branch lacks, where no team is at work.
	Untaken *team.Untaken `json:"untaken,omitempty"`
}

// newStatusCommand returns muster status. It reads everything once and writes nothing; with --watch again and again.
// State without a run, a member or a task counts as no team.
func newStatusCommand(a *App) *cobra.Command {
	var isWatched bool
	none := func() error {
		return a.printLine(face.Empty(), nil, "%s: %s", workspace.ErrNoTeam.Message, workspace.ErrNoTeam.Hint)
	}
	c := &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: namedArgs(),
		RunE: a.looking(none, func(c *cobra.Command, o opened, _ []string) error {
			now, err := readStatus(c.Context(), a, o)
			switch {
			case err != nil:
				return err
			case isWatched:
				return a.watchStatus(c.Context(), o)
			// The directory of the state may exist before anything has happened in it.
			case now.Run.StartedAt == 0 && len(now.Members) == 0 && len(now.Tasks) == 0:
				return none()
			}
			return a.print(now, now.draw)
		})}
	c.Flags().BoolVar(&isWatched, "watch", false, "show it again each second, until Ctrl-C")
	return c
}

func readStatus(ctx context.Context, a *App, o opened) (s status, err error) {
	s.Overview, err = face.Overview(ctx, o.Team, a.Now())
	if err == nil && !s.Alive && s.Run.StartedAt > 0 {
		s.look(ctx, o)
	}
	return s, err
}

// watchStatus shows the status on the whole terminal, until ctx ends.
func (a *App) watchStatus(ctx context.Context, o opened) error {
	if !isTerminal(a.Stdout) || isPlain(a) || a.json {
		return &usageError{"muster status", "--watch needs a terminal; as lines: muster log -f"}
	}
	show := func(s string) { _, _ = io.WriteString(a.Stdout, s) } // a terminal that is gone ends ctx
	show(ansi.SetModeAltScreenSaveCursor + ansi.HideCursor)
	defer show(ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor)
	for tick := time.Tick(time.Second); ; {
		now, err := readStatus(ctx, a, o)
		if err != nil && ctx.Err() == nil {
			return err
		}
		rows := strings.Split(strings.TrimRight(now.draw(a.screen(a.Stdout)), "\n"), "\n")
		if height := view.TerminalHeight(a.Stdout); height > 0 {
			rows = rows[:min(len(rows), height-1)]
		}
		show(ansi.CursorHomePosition + strings.Join(rows, ansi.EraseLineRight+"\r\n") + ansi.EraseScreenBelow)
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

// look finds what only matters while no team is at work. What cannot be told is left out.
func (s *status) look(ctx context.Context, o opened) {
	if s.Run.EndedAt == 0 && s.Run.Stopped == "" {
		s.Stopped = howStopped(ctx, o, s.Run)
	}
	if u, err := team.TargetOf(o.Team).Untaken(ctx); err == nil && u.Commits > 0 {
		s.Untaken = &u
	}
}

func (s status) draw(screen view.Screen) string {
	out := s.Overview.Draw(screen)
	if s.Stopped != "" {
		out += "STOPPED " + s.Stopped + "\n"
	}
	if u := s.Untaken; u != nil {
		out += fmt.Sprintf("TAKE    %s not in %s yet: muster merge\n",
			text.Count(u.Commits, "landed commit")+text.Plural(u.Commits, " is", " are"), text.OneLine(u.Branch))
	}
	return out
}
