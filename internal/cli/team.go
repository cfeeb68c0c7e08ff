package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
)

func (a *App) teamCommand() *cobra.Command {
	return a.group("team", "the members: list, spawn, stop", a.teamList(), a.teamSpawn(), a.teamStop())
}

func (a *App) teamList() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "all members", Args: exactly(), RunE: func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		p, err := a.look(ctx)
		if errors.Is(err, nobody) {
			return a.print([]muster.Member{}, noMembers)
		}
		if err != nil {
			return err
		}
		defer p.close()
		members, err := p.members(ctx)
		if err != nil {
			return err
		}
		all := make([]muster.Member, 0, len(members))
		for _, m := range members {
			all = append(all, m.Member)
		}
		if len(all) == 0 {
			return a.print(all, noMembers)
		}
		return a.print(all, func(w io.Writer, pt view.Paint, width int) error {
			return view.WriteMembers(w, pt, width, seen(members), a.Now())
		})
	}}
}

func noMembers(w io.Writer, _ view.Paint, _ int) error {
	_, err := fmt.Fprintln(w, `no members: muster run "GOAL" starts a lead, who spawns them`)
	return err
}

// present is a member and whether a living process hosts it.
type present struct {
	muster.Member
	alive bool
}

// seen are members as they are shown.
func seen(members []present) (all []view.Member) {
	for _, m := range members {
		all = append(all, view.Member{Member: m.Member, Alive: m.alive})
	}
	return all
}

// members are all members, the lead first, then as they joined.
func (p *place) members(ctx context.Context) ([]present, error) {
	r := p.theRoster(ctx)
	members, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	alive := map[muster.HostID]bool{}
	hosts, err := r.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		alive[h.ID()] = true
	}
	all := make([]present, 0, len(members))
	for _, m := range members {
		all = append(all, present{m, alive[m.Host]})
	}
	slices.SortStableFunc(all, func(x, y present) int {
		if (x.Name == muster.Lead) != (y.Name == muster.Lead) {
			return map[bool]int{true: -1, false: 1}[x.Name == muster.Lead]
		}
		return cmp.Or(cmp.Compare(x.JoinedAt, y.JoinedAt), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

func (a *App) teamSpawn() *cobra.Command {
	var m muster.Member
	c := &cobra.Command{Use: "spawn NAME", Short: "add a teammate, or one again that has shut down", Args: exactly("NAME"),
		Long: "A living process of the team starts it; where none lives, the next muster resume does."}
	f := c.Flags()
	f.StringVar(&m.Role, "role", "", "its `ROLE`, one word such as coder")
	f.StringVar(&m.Prompt, "prompt", "", "`TEXT` that it should know; tasks come from the board")
	f.StringVar(&m.Model, "model", "", "another `MODEL` than the team's")
	f.BoolVar(&m.RequirePlan, "require-plan", false, "it asks for approval of a plan before each task")
	c.RunE = func(c *cobra.Command, args []string) error {
		if m.Role == "" {
			return &usageError{c.CommandPath(), c.CommandPath() + " wants --role ROLE"}
		}
		ctx := c.Context()
		p, err := a.change(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		m.Name, m.StartedBy, m.Status = muster.Name(args[0]), muster.User, muster.Working
		added, err := p.theRoster(ctx).Add(ctx, m)
		if err != nil {
			return err
		}
		hosts, err := p.theRoster(ctx).Hosts(ctx)
		if err != nil {
			return err
		}
		return a.print(added, func(w io.Writer, _ view.Paint, _ int) error {
			s := ": the team starts it"
			if len(hosts) == 0 {
				s = " when the team runs again: muster resume, or muster run \"GOAL\""
			}
			_, err := fmt.Fprintf(w, "%s joins as %s%s\n", added.Name, view.OneLine(added.Role), s)
			return err
		})
	}
	return c
}

// lastWrites is how long after its request a member may take to end: it is interrupted, then killed.
const lastWrites = 15 * time.Second

func (a *App) teamStop() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "stop [NAME]", Short: "stop a teammate, or the whole team", Args: exactly("[NAME]"),
		Long: "An idle member stops at once. A working one is asked, and may refuse with a reason; who does not\n" +
			"answer in 30 s is stopped. Tasks go back to the board, lanes are kept. Without NAME all are\n" +
			"stopped, the lead last."}
	c.Flags().BoolVar(&force, "force", false, "do not ask")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		p, err := a.change(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		if len(args) == 1 {
			if _, err := p.theRoster(ctx).Get(ctx, muster.Name(args[0])); err != nil {
				return err
			}
		}
		members, err := p.members(ctx)
		if err != nil {
			return err
		}
		slices.Reverse(members) // the lead last
		members = slices.DeleteFunc(members, func(m present) bool {
			return m.Status == muster.Shutdown || len(args) == 1 && string(m.Name) != args[0]
		})
		ends := make([]stopped, len(members))
		var failed error
		if n := len(members); n > 0 && members[n-1].Name == muster.Lead { // when nobody is left to wait for
			p.stopAll(ctx, members[:n-1], force, ends)
			p.stopAll(ctx, members[n-1:], force, ends[n-1:])
		} else {
			p.stopAll(ctx, members, force, ends)
		}
		for _, e := range ends {
			failed = errors.Join(failed, e.err)
		}
		if failed != nil {
			return failed
		}
		err = a.print(ends, func(w io.Writer, _ view.Paint, _ int) error { return writeStopped(w, ends) })
		if err != nil {
			return err
		}
		return stopStatus(ends)
	}
	return c
}

// stopped is what became of one member.
type stopped struct {
	Name    muster.Name `json:"name"`
	Stopped bool        `json:"stopped"`
	Why     string      `json:"reason,omitempty"`
	err     error
}

func writeStopped(w io.Writer, ends []stopped) error {
	if len(ends) == 0 {
		_, err := fmt.Fprintln(w, "nobody is there to stop")
		return err
	}
	t := view.Table{Titles: []string{"", "", ""}, Wide: -1}
	for _, e := range ends {
		t.Row(view.Text(string(e.Name)), view.Text(map[bool]string{true: "stopped", false: "goes on"}[e.Stopped]), view.Text(view.OneLine(e.Why)))
	}
	return t.Write(w, false, 0)
}

// stopStatus returns the error that ends the command with exit code 1 when a member goes on, however it was printed.
func stopStatus(ends []stopped) error {
	if slices.ContainsFunc(ends, func(e stopped) bool { return !e.Stopped }) {
		return status(exitError)
	}
	return nil
}

// stopAll stops members side by side and waits until it is decided for each.
func (p *place) stopAll(ctx context.Context, members []present, force bool, ends []stopped) {
	p.theRequests(ctx) // opened here: the members below share the rooms
	var all sync.WaitGroup
	for i, m := range members {
		if !m.alive {
			ends[i] = p.layOff(ctx, m.Member)
			continue
		}
		all.Go(func() { ends[i] = p.stop(ctx, m.Name, force) })
	}
	all.Wait()
}

// stop stops one member that lives.
func (p *place) stop(ctx context.Context, name muster.Name, force bool) stopped {
	end := stopped{Name: name}
	changed := p.theRoster(ctx).Watch(ctx)
	r, err := p.theRequests(ctx).Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.User, To: name, Force: force, Reason: "stopped by user"})
	if err == nil {
		r, err = p.theRequests(ctx).Await(ctx, r.ID)
	}
	switch {
	case err != nil:
		end.err = err
		return end
	case r.Status == muster.RequestRejected:
		end.Why = r.Response
		return end
	case r.Status == muster.RequestExpired:
		end.Why = "no answer in time"
	}
	limit := time.After(lastWrites)
	for {
		now, err := p.theRoster(ctx).Get(ctx, name)
		if err != nil || now.Status == muster.Shutdown {
			end.Stopped, end.err = err == nil, err
			return end
		}
		switch alive, err := p.theRoster(ctx).Alive(ctx, now.Host); {
		case err != nil:
			end.err = err
			return end
		case !alive && name == muster.Lead: // its record stays as it is, for resume
			end.Stopped = true
			return end
		case !alive:
			return p.layOff(ctx, now)
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // its process may have died
		case <-limit:
			end.Why = fmt.Sprintf("still %s %s after it was to stop", now.Status, view.Duration(lastWrites))
			return end
		case <-ctx.Done():
			end.err = context.Cause(ctx)
			return end
		}
	}
}

// layOff ends a member that no process hosts: its record says so, and what it had in hand goes back to the board.
func (p *place) layOff(ctx context.Context, m muster.Member) stopped {
	end := stopped{Name: m.Name, Why: "its process had ended"}
	taken := false
	_, end.err = p.theRoster(ctx).Update(ctx, m.Name, func(now *muster.Member) {
		if taken = now.Host != m.Host; !taken {
			now.Status, now.Host, now.IdleReason, now.Doing, now.Task = muster.Shutdown, "", "", "", 0
		}
	})
	if end.err == nil && taken {
		end.err = muster.Errorf(muster.Stale, "%s has just been taken over by another process", m.Name).WithHint("muster team stop %s", m.Name)
	}
	if end.Stopped = end.err == nil; !end.Stopped || m.Host == "" { // without a host its claims are foreign ones in the same name
		return end
	}
	all, err := p.theBoard().List(ctx)
	if end.err = err; err != nil {
		return end
	}
	for _, t := range all {
		if t.Owner != m.Name || !t.Open() {
			continue
		}
		if _, end.err = p.revoke(ctx, t.ID, "its owner was stopped"); end.err != nil {
			return end
		}
	}
	return end
}
