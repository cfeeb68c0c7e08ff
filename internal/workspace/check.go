package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/roster"
	"muster/internal/text"
	"muster/internal/worktree"
)

// CheckRepository checks git and the repository that dir lies in. The repository is nil where a team cannot work on it.
func CheckRepository(ctx context.Context, dir string) (repo *git.Repo, found Findings) {
	repo, err := git.Open(ctx, dir)
	version := ""
	if err == nil {
		version, err = repo.Run(ctx, repo.Root(), "version")
	}
	if err != nil {
		found.AddError("git", err)
		return nil, found
	}
	found.Add("git", Healthy, strings.TrimPrefix(strings.TrimSpace(version), "git version "), "")
	s, err := git.Checkout(ctx, repo)
	if err != nil {
		found.AddError("repository", err)
		return repo, found
	}
	found.Add("repository", Healthy, fmt.Sprintf("%s, on %s at %.7s", repo.Here(), cmp.Or(s.Branch, "no branch"),
		s.Head), "")
	if s.Changed > 0 {
		found.Add("repository", Note, "there are uncommitted changes: they are part of no lane",
			"commit what the team should build on, or: muster run --with-changes")
	}
	return repo, found
}

// CheckDirectories checks whether locks work, and whether the state can be written, where it lies or would lie. It
// removes the files with which it tries. Both are tried and not looked up: network file systems take a lock that no
// other machine sees, and rights, quotas and read-only mounts show in a real write only.
func CheckDirectories(repo *git.Repo) (found Findings) {
	dir, on := paths.Dir(repo.Root()), durable.OS{Root: repo.Root()}
	locks := dir.Locks()
	if !exists(locks) { // tried in git's directory, because looking must not make state
		temp, err := os.MkdirTemp(repo.CommonDir(), "muster-doctor-")
		if err != nil {
			found.Add("locks", Broken, "nothing can be written in "+repo.CommonDir()+": "+muster.PlainText(err),
				"make it writable for you")
			return found
		}
		defer os.RemoveAll(temp)
		locks, on = temp, durable.OS{Root: temp}
	}
	if err := durable.New(on).ProbeLocks(locks); err != nil {
		found.AddError("locks", err)
	} else {
		found.Add("locks", Healthy, "two processes exclude each other", "")
	}
	// Each directory is tried where it is, or else where it would be made.
	before := len(found)
	for _, path := range []string{dir.Tasks(), dir.Team(), dir.Transcripts(), dir.Worktrees()} {
		if st, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			path = string(dir) // it would be made there
		} else if err == nil && !st.IsDir() {
			found.Add("writing", Broken, path+" is a file where muster needs a directory", "move it away")
			continue
		}
		if err := tryWriting(string(dir), path); err != nil {
			fix := "make it writable for you"
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				fix = "free some space; a team that runs goes on when there is room"
			}
			found.Add("writing", Broken, "nothing can be written in "+path+": "+muster.PlainText(err), fix)
		}
	}
	if len(found) == before {
		found.Add("writing", Healthy, "the state directories can be written", "")
	}
	return found
}

// tryWriting writes and removes a file. It is not empty, because an empty file can be made on a full disk.
func tryWriting(root, dir string) error {
	name := filepath.Join(dir, durable.TemporaryName("muster-doctor"))
	f, err := durable.OpenBelow(root, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 64<<10))
	return errors.Join(cmp.Or(err, f.Sync()), f.Close(), os.Remove(f.Name()))
}

// doctor gathers the findings of a check or of a repair of the state. The methods of a check run in the order in which
// people read the report, and some use what an earlier one has found. Each method of a repair does one kind of repair,
// any number of times: what a killed repair has left is done by the next.
type doctor struct {
	Findings
	w       *Workspace
	hosts   []roster.HostRecord    // processes of the team that are alive
	laneFix map[muster.Name]string // what people must do of a lane before a repair can help
}

// isAlive reports whether a process of the team lives: it mends some things by itself.
func (d *doctor) isAlive() bool { return len(d.hosts) > 0 }

// Check checks the state: whether each document can be read, and whether the services agree with each other and with
// git. It changes nothing. What is broken hides nothing that can be checked without it.
func (w *Workspace) Check(ctx context.Context) Findings {
	d := &doctor{w: w, laneFix: map[muster.Name]string{}}
	if !w.HasState() {
		d.Add("team", Note, ErrNoTeam.Message, ErrNoTeam.Hint)
		return d.Findings
	}
	d.documents()
	d.events(ctx)
	d.team(ctx)
	return d.Findings
}

// events says how many events cannot be read.
func (d *doctor) events(ctx context.Context) {
	if n, err := d.w.journal.Check(ctx); err != nil {
		d.AddError("events", err)
	} else if n > 0 {
		d.Add("events", Note, text.Count(n, "line")+" cannot be read: the others can, and nothing depends on them", "")
	}
}

// team checks the services, and says who lives and whether somebody should.
func (d *doctor) team(ctx context.Context) {
	w := d.w
	if err := w.CheckNotArchiving(ctx); err != nil {
		d.AddError("archive", err)
	}
	run, _ := w.runs.Look(ctx) // one that cannot be read is reported as a document
	// Before the services, whose findings depend on it: what a living process is about to do looks half done.
	var err error
	if d.hosts, err = w.Roster(ctx).Hosts(ctx); err != nil {
		d.AddError("team", err)
		return
	}
	d.lanes(ctx)
	d.board(ctx)
	d.owners(ctx)
	d.setAside()
	d.temporaries()
	// The last lines of the report say whether somebody works, and what to do where somebody should.
	for _, h := range d.hosts {
		d.Add("team", Healthy, fmt.Sprintf("%s lives as pid %d (%s)", w.Name(ctx), h.PID, text.OneLine(h.About)), "")
	}
	if !d.isAlive() && run.StartedAt > 0 && run.EndedAt == 0 {
		d.Add("team", Note, "the run of "+string(run.Team)+" stopped before its end", "muster resume")
	} else if !d.isAlive() {
		d.Add("team", Healthy, "no process of the team lives", "")
	}
}

// lanes compares the lanes' index with git.
func (d *doctor) lanes(ctx context.Context) {
	lanes, err := d.w.Lanes(ctx)
	var all []worktree.Finding
	if err == nil {
		all, err = lanes.Check(ctx)
	}
	if err != nil {
		d.AddError("lanes", err)
		return
	}
	before := len(d.Findings)
	// Each finding says which of two is needed: something that only people can do first, or the repair alone.
	for _, f := range all {
		switch {
		case d.isAlive() && f.Busy:
		case f.Fix != "":
			d.laneFix[f.Lane] = f.Fix
			d.Add("lanes", Broken, fmt.Sprintf("%s: %s", f.Lane, f.Text), thenRepair(f.Fix))
		case f.Lane == "":
			d.Add("lanes", Broken, f.Text+"; the lanes themselves are git's and whole",
				repairCommand+"  (finds them again from git)")
		default:
			d.Add("lanes", Broken, fmt.Sprintf("%s: %s", f.Lane, f.Text), repairCommand)
		}
	}
	if len(d.Findings) > before { // List would write a damaged index anew, and a check changes nothing
		return
	}
	if list, err := lanes.List(ctx); err == nil && len(list) > 0 {
		d.Add("lanes", Healthy, text.Count(len(list), "lane")+", as git has them", "")
	}
}

// board says what of the tasks does not fit together. A living team mends that by itself.
func (d *doctor) board(ctx context.Context) {
	// A completion writes several documents, one after the other. Between them the board does not fit together.
	if d.isAlive() {
		return
	}
	all, err := d.w.Board().Check(ctx)
	if err != nil {
		d.AddError("board", err)
	}
	for _, f := range all {
		// A task whose lane stands in its way is repaired after that lane, which only people can free.
		fix := repairCommand
		if first := d.laneFix[f.Lane]; first != "" {
			fix = thenRepair(first)
		}
		d.Add("board", Broken, fmt.Sprintf("task %d: %s", f.Task, f.Text), fix)
	}
}

// owners says which tasks are claimed by somebody who cannot work on them.
func (d *doctor) owners(ctx context.Context) {
	tasks, err := d.w.Board().Claimed(ctx)
	if err != nil {
		return // reported by board
	}
	r := d.w.Roster(ctx)
	for _, t := range tasks {
		if t.Owner == "" || t.Owner == muster.Lead || t.Owner == muster.User {
			continue
		}
		// A member that another program has written into config.json has no record here, and is known all the same.
		m, err := r.Get(ctx, t.Owner)
		why, fix := "", fmt.Sprintf("muster task release %d", t.ID)
		switch {
		case errors.Is(err, muster.ErrNotFound):
			if known, _, err := r.Known(ctx, t.Owner); err == nil && !known {
				why = "who is not in the team"
			}
		case err != nil: // its record is reported as a document
		case m.Status == muster.Shutdown:
			why = "who has shut down"
		case m.Host != "" && !d.isAlive():
			why, fix = "whose process has died, and no other has taken it over", "muster resume, or: "+fix
		}
		if why != "" {
			owner := text.OneLine(string(t.Owner))
			d.Add("board", Note, fmt.Sprintf("task %d is held by %s, %s", t.ID, owner, why), fix)
		}
	}
}

// setAside lists what muster could not read and has set aside.
func (d *doctor) setAside() {
	dir := d.w.Paths()
	var files []string
	// In the order in which people read them: mail, tasks, team, lanes, conversations.
	for _, of := range [][2]string{
		{dir.Inbox(), "*.rejected.jsonl"}, {dir.Inbox(), "*.torn"}, {dir.Tasks(), "*.torn"}, {dir.Team(), "*.torn"},
		{dir.Worktrees(), "*.torn"}, {dir.Transcripts(), "*/*.torn"},
	} {
		files = append(files, durable.Glob(of[0], of[1])...)
	}
	for _, path := range files {
		data, _, err := stateFiles(d.w).ReadFile(path)
		if err != nil || len(data) == 0 {
			continue
		}
		format := "%s has %s that were set aside"
		n := bytes.Count(data, []byte("\n"))
		if n <= 1 {
			format = "%s has %s that was set aside"
		}
		d.Add("aside", Note, fmt.Sprintf(format, Relative(d.w, path), text.Count(n, "line")), "")
	}
	if kept, err := os.ReadDir(filepath.Join(dir.Team(), corruption.Table)); err == nil && len(kept) > 0 {
		d.Add("aside", Note, text.Count(len(kept), "damaged file")+
			" that muster replaced lie in .team/"+corruption.Table, "")
	}
}

// temporaries says how many files killed processes have left half written.
func (d *doctor) temporaries() {
	places := map[string]bool{}
	all := temporaries(d.w.Paths())
	for _, path := range all {
		places[Relative(d.w, filepath.Dir(path))] = true
	}
	if len(all) > 0 {
		d.Add("leftovers", Note, text.Count(len(all), "temporary file")+" of killed processes in "+
			strings.Join(slices.Sorted(maps.Keys(places)), ", "), repairCommand)
	}
}

// Health says how bad a finding is. The values are part of the output of muster doctor --json.
type Health string

// The values of Health.
const (
	Healthy Health = "ok"
	Note    Health = "note"   // worth to know; nothing is wrong
	Mended  Health = "mended" // Repair has done something about it
	Broken  Health = "broken"
)

// Finding is what a check or a repair says of one thing.
type Finding struct {
	Area   string `json:"what"`
	Health Health `json:"health"`
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"` // what people have to do or to type
}

// Findings are gathered by checks, in the order in which people read them.
type Findings []Finding

// Add adds a finding.
func (f *Findings) Add(area string, health Health, text, fix string) {
	*f = append(*f, Finding{area, health, text, fix})
}

// AddError adds that something is broken by an error.
func (f *Findings) AddError(area string, err error) {
	f.Add(area, Broken, muster.PlainText(err), muster.HintOf(err))
}

// IsBroken reports whether any of the findings is Broken.
func (f Findings) IsBroken() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Health == Broken })
}

// repairCommand is what to type so that a finding is repaired.
const repairCommand = "muster doctor --repair"

// thenRepair returns what only the user can do, followed by the repair.
func thenRepair(fix string) string {
	if strings.Contains(fix, repairCommand) {
		return fix
	}
	return fix + ", then: " + repairCommand
}

// Relative returns a path as it is typed from the repository's root.
func Relative(w *Workspace, path string) string {
	if rel, err := filepath.Rel(w.root, path); err == nil {
		return rel
	}
	return path
}
