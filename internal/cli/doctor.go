package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/view"
)

func (a *App) doctorCommand() *cobra.Command {
	var repair bool
	c := &cobra.Command{Use: "doctor", Short: "what works on this machine and in this repository, and what does not", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			d := &doctor{app: a, mend: repair}
			d.all(c.Context())
			err := a.print(d.findings, func(w io.Writer, p view.Paint, _ int) error { return writeFindings(w, p, d.findings) })
			if err == nil && d.broken {
				return status(exitError)
			}
			return err
		}}
	c.Flags().BoolVar(&repair, "repair", false, "restore what can be restored, and say what was done; what is replaced is kept")
	return c
}

// finding is what the doctor says of one thing.
type finding struct {
	What   string `json:"what"`
	Health string `json:"health"` // ok, note, mended, broken
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"` // what to do or type
}

type doctor struct {
	app      *App
	findings []finding
	mend     bool
	broken   bool
	first    map[muster.Name]string // what to do of a lane before anything can repair it
}

func (d *doctor) say(what, health, text, fix string) {
	d.findings = append(d.findings, finding{what, health, text, fix})
	d.broken = d.broken || health == "broken"
}

// err says that something is broken by an error.
func (d *doctor) err(what string, err error) {
	d.say(what, "broken", err.Error(), hintOf(err))
}

func writeFindings(w io.Writer, p view.Paint, all []finding) error {
	names := 0
	for _, f := range all {
		names = max(names, len(f.What))
	}
	for _, f := range all {
		t := map[string]view.Tone{"ok": view.Good, "mended": view.Good, "broken": view.Bad}[f.Health]
		indent := strings.Repeat(" ", 6+2+names+2)
		body := strings.ReplaceAll(strings.TrimSpace(view.ManyLines(f.Text)), "\n", "\n"+indent)
		if _, err := fmt.Fprintf(w, "%s  %s  %s\n", p.In(t, view.Pad(f.Health, 6)), view.Pad(f.What, names), body); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(w, "%s%s\n", indent, strings.ReplaceAll(view.ManyLines(f.Fix), "\n", "\n"+indent))
		}
	}
	return nil
}

// all looks at everything; what is broken hides nothing that can be looked at without it.
func (d *doctor) all(ctx context.Context) {
	repo := d.repository(ctx)
	if repo != nil {
		dir := paths.Dir(repo.Root())
		d.directories(dir, repo.CommonDir())
		if d.mend {
			d.repair(ctx, dir)
		}
		d.state(ctx, dir)
		d.team(ctx)
	}
	d.settings(repo)
	d.guard(ctx)
}

func (d *doctor) repository(ctx context.Context) *git.Repo {
	repo, err := git.Open(ctx, d.app.at())
	if err != nil {
		d.err("git", err)
		return nil
	}
	version, err := repo.Run(ctx, repo.Root(), "version")
	if err != nil {
		d.err("git", err)
		return nil
	}
	d.say("git", "ok", strings.TrimPrefix(strings.TrimSpace(version), "git version "), "")
	head, err := repo.Head(ctx)
	if err != nil {
		d.err("repository", err)
		return nil
	}
	on := "no branch"
	if branch, err := repo.CurrentBranch(ctx); err == nil && branch != "" {
		on = strings.TrimPrefix(branch, "refs/heads/")
	}
	d.say("repository", "ok", fmt.Sprintf("%s, on %s at %.7s", repo.Root(), on, head), "")
	if dirty, err := repo.Status(ctx, repo.Root()); err != nil {
		d.err("repository", err)
	} else if dirty {
		d.say("repository", "note", "there are uncommitted changes: they are part of no lane", "commit what the team should build on")
	}
	return repo
}

// directories tries whether locks work and the state can be written, where it lies.
func (d *doctor) directories(dir paths.Dir, common string) {
	locks := dir.Locks()
	if !isDir(locks) { // tried beside them, so that looking makes no state
		temp, err := os.MkdirTemp(common, "muster-doctor-")
		if err != nil {
			d.say("locks", "broken", "nothing can be written in "+common+": "+err.Error(), "make it writable for you")
			return
		}
		defer os.RemoveAll(temp)
		locks = temp
	}
	if err := durable.New(durable.OS{}).ProbeLocks(locks); err != nil {
		d.err("locks", err)
	} else {
		d.say("locks", "ok", "two processes exclude each other", "")
	}
	fine := true
	for _, path := range []string{dir.Tasks(), dir.Team(), dir.Transcripts(), dir.Worktrees()} {
		if st, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			path = string(dir) // it is made there
		} else if err == nil && !st.IsDir() {
			d.say("writing", "broken", path+" is a file where muster needs a directory", "move it away")
			fine = false
			continue
		}
		f, err := os.CreateTemp(path, ".muster-doctor-")
		if err == nil { // an empty file has room on a full disk
			_, err = f.Write(make([]byte, 64<<10))
			err = errors.Join(cmp.Or(err, f.Sync()), f.Close(), os.Remove(f.Name()))
		}
		if err != nil {
			fix := "make it writable for you"
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				fix = "free some space; a team that runs goes on when there is room"
			}
			d.say("writing", "broken", "nothing can be written in "+path+": "+err.Error(), fix)
			fine = false
		}
	}
	if fine {
		d.say("writing", "ok", "the state directories can be written", "")
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// team says who lives, and whether somebody should.
func (d *doctor) team(ctx context.Context) {
	p, err := d.app.look(ctx)
	if errors.Is(err, nobody) {
		d.say("team", "note", nobody.Message, nobody.Hint)
		return
	}
	if err != nil {
		d.err("team", err)
		return
	}
	defer p.close()
	if err := p.refuseHalf(); err != nil {
		d.err("archive", err)
	}
	run, _ := p.run(ctx) // one that cannot be read is said by state
	hosts, err := p.theRoster(ctx).Hosts(ctx)
	if err != nil {
		d.err("team", err)
		return
	}
	d.lanes(ctx, p, len(hosts) > 0)
	d.graph(ctx, p, len(hosts) > 0)
	d.orphans(ctx, p, len(hosts) > 0)
	d.aside(p.home)
	d.leftovers(p.home)
	for _, h := range hosts {
		d.say("team", "ok", fmt.Sprintf("%s lives as pid %d (%s)", p.team(ctx), h.PID, view.OneLine(h.About)), "")
	}
	if len(hosts) == 0 && run.StartedAt > 0 && run.EndedAt == 0 {
		d.say("team", "note", "the run of "+string(run.Team)+" stopped before its end", "muster resume")
	} else if len(hosts) == 0 {
		d.say("team", "ok", "no process of the team lives", "")
	}
}

// guard starts a program the way tools are started, and looks who would kill it.
func (d *doctor) guard(ctx context.Context) {
	l, err := proc.New(ctx)
	if err != nil {
		d.err("guard", err)
		return
	}
	defer l.Close()
	p, err := l.Start(ctx, proc.Spec{Argv: []string{"git", "version"}, Dir: filepath.Clean(d.app.Dir), Env: d.app.Env})
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		d.err("guard", err)
		return
	}
	if g, ok := l.(interface{ PID() int }); ok && g.PID() != 0 {
		d.say("guard", "ok", "whatever a tool starts ends with it", "")
		return
	}
	d.say("guard", "note", "this system has no subreapers: what a tool detaches from its group may outlive it", "")
}
