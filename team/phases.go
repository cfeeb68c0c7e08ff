package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/roster"
	"muster/internal/teammate"
	"muster/internal/worktree"
)

// phaseWatch looks at what no member may change: the target, and, where no sandbox keeps members from it, what of the
// repository is the user's. It looks when the run starts, after each phase of a member that lives here, and at the end,
// so that an agent's mistake is found where it was made. It is a teammate.Phases. What it finds is told and, but for
// the target, left as it is.
type phaseWatch struct {
	site     *site
	repo     *git.Repo
	progress func(context.Context) (teammate.TeamProgress, error)
	host     muster.HostID // this process
	// isConfined says that neither commands of members nor checks can write where the user's files are.
	isConfined bool

	// lock holds one token: who looks. It is no mutex, because a look reads files, and in tests of simulated time that
	// takes time.
	lock    chan struct{}
	working map[muster.Name]bool // who is in a phase in this process
	last    *git.Fingerprint     // nil: what is the user's is not looked at
	state   *os.File             // .team, open, so that no other directory becomes the same file; nil: there is none
	isLost  bool                 // it was found to be gone
	files   map[string]bool      // what was told of files of the checkout, and to whom
}

// newPhaseWatch returns the watch of a run. It is nil where there is no repository to watch, as in simulated teams.
func newPhaseWatch(m *members, host muster.HostID, isConfined bool) *phaseWatch {
	r, ok := m.site.repository.(gitRepository)
	if !ok {
		return nil
	}
	return &phaseWatch{site: m.site, repo: r.Repo, progress: m.progress, host: host,
		isConfined: isConfined, lock: make(chan struct{}, 1),
		working: map[muster.Name]bool{}, files: map[string]bool{}}
}

// skip leaves out the refs that landings and lanes move, and the members' worktrees. The archived work of earlier lanes
// is the user's.
func (w *phaseWatch) skip(ref string) bool {
	if filepath.IsAbs(ref) {
		lanes, ok := w.site.lanes.(*worktree.Lanes)
		return ok && lanes.IsMembers(context.Background(), ref)
	}
	return ref == w.site.target() || strings.HasPrefix(ref, worktree.BranchPrefix) ||
		strings.HasPrefix(ref, "refs/muster/") || strings.HasPrefix(ref, "refs/notes/")
}

// lander returns the lander that protects the target; nil in tests that have another.
func (w *phaseWatch) lander() *landing.Lander {
	l, _ := w.site.lander.(*landing.Lander)
	return l
}

// start looks at the target, which was at rest while no process lived. Where members' commands, or the checks of what
// they write, run with the user's rights, it takes the first fingerprint, and Begin waits for that.
func (w *phaseWatch) start(ctx context.Context) {
	w.lock <- struct{}{}
	w.lookAtRest(ctx)
	if f, err := os.Open(w.site.workspace.Paths().Team()); err == nil { // a store in memory has none
		w.state = f
	}
	if w.isConfined {
		<-w.lock
		return
	}
	go func() {
		defer func() { <-w.lock }()
		var err error
		w.last, err = git.TakeFingerprint(ctx, w.repo, nil, w.skip)
		logDropped(ctx, w.site.log, "looking at the repository before the run", err)
	}()
}

// Begin notes that a member works. While nobody works here or elsewhere, what has happened to the target was the
// user's doing.
func (w *phaseWatch) Begin(ctx context.Context, name muster.Name) {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	w.lookAtRest(ctx)
	w.working[name] = true
}

func (w *phaseWatch) lookAtRest(ctx context.Context) {
	l := w.lander()
	if l == nil || len(w.working) > 0 || w.othersWork(ctx) {
		return
	}
	logDropped(ctx, w.site.log, "looking at the target before a phase", l.AtRest(ctx))
}

// othersWork reports whether the roster says that anybody works in another process that lives. What cannot be read
// counts as one who does: then a target that was moved is not taken for the user's doing.
func (w *phaseWatch) othersWork(ctx context.Context) bool {
	hosts, err := w.site.roster.Hosts(ctx)
	hosts = slices.DeleteFunc(hosts, func(h roster.HostRecord) bool { return h.ID() == w.host })
	if err != nil || len(hosts) == 0 { // the usual case, for which the roster need not be read
		return err != nil
	}
	members, err := w.site.roster.List(ctx)
	return err != nil || slices.ContainsFunc(members, func(m muster.Member) bool {
		return m.Status == muster.Working &&
			slices.ContainsFunc(hosts, func(h roster.HostRecord) bool { return h.ID() == m.Host })
	})
}

// End looks at the target and at the repository, and tells what it finds.
func (w *phaseWatch) End(ctx context.Context, name muster.Name, task muster.Task) (moved string) {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	isAlone := len(w.working) == 1
	delete(w.working, name)
	if d := w.secure(ctx, name); d != nil && !d.IsUsers && task.ID != 0 && (isAlone || w.isOnLane(ctx, d, task)) {
		moved = d.Error()
	}
	w.look(ctx, name)
	w.findLost()
	return moved
}

// secure puts a displaced target back. At the end of a lead that has nothing left to land, what it did to the target
// may be what its user wanted of it, such as deleting a branch whose work was taken: the end of the run says what is
// missing, and how to have it back.
func (w *phaseWatch) secure(ctx context.Context, name muster.Name) *landing.Displaced {
	l := w.lander()
	if l == nil || l.IsUntouched(ctx) {
		return nil
	}
	if name == muster.Lead {
		o, err := w.progress(ctx)
		if err == nil && len(o.Open) == 0 && o.Landed > 0 {
			if isBehind, err := l.IsTakenBack(ctx); err != nil || isBehind {
				return nil
			}
		}
	}
	_, d, err := l.Secure(ctx)
	if !errors.Is(err, muster.ErrNotFound) { // gone by the check: the landing has said so
		logDropped(ctx, w.site.log, "looking at the target after a phase", err)
	}
	return d
}

// isOnLane reports whether what the target was displaced to is a commit of the task's lane.
func (w *phaseWatch) isOnLane(ctx context.Context, d *landing.Displaced, task muster.Task) bool {
	at, err := w.repo.Ref(ctx, worktree.BranchPrefix+string(task.Worktree))
	if err != nil || at == "" || d.At == "" {
		return false
	}
	isOn, err := w.repo.IsAncestor(ctx, d.At, at)
	return err == nil && isOn
}

// look tells user, lead and member what has changed since the last look. It does not say who did it: the user may work
// in their checkout at the same time.
func (w *phaseWatch) look(ctx context.Context, name muster.Name) {
	if w.last == nil {
		return
	}
	now, err := git.TakeFingerprint(ctx, w.repo, w.last, w.skip)
	if err != nil {
		logDropped(ctx, w.site.log, "looking at the repository after a phase", err)
		return
	}
	changes := now.Changes(w.last)
	w.last = now
	if len(changes) == 0 || w.hasTold(name, changes) {
		return
	}
	text := "changed while " + string(name) + " worked: " + strings.Join(changes, "; ")
	w.site.note(ctx, name, text)
	for _, to := range slices.Compact([]muster.Name{name, muster.Lead}) {
		// News wakes no model: nothing has to be done at once, and the user may have done it themselves.
		_, err := w.site.post.Send(ctx, muster.Message{Type: muster.MailResult, From: muster.System, To: to,
			Content: fmt.Sprintf("In the user's repository, outside of all lanes, this has %s. Only the user may "+
				"change that. If it was you, say so, and change nothing more there.", text)})
		logDropped(ctx, w.site.log, "telling what has changed in the repository", err)
	}
}

// hasTold reports whether nothing has changed but files of the checkout, and just these were told before to this
// member. The user may edit a file for hours, or have a log of the run there: the models need not hear of it after each
// phase.
func (w *phaseWatch) hasTold(name muster.Name, changes []string) bool {
	what := string(name) + " " + changes[0]
	if len(changes) > 1 || !strings.HasPrefix(changes[0], git.ChangedFiles) {
		return false
	}
	told := w.files[what]
	w.files[what], w.files[" "+changes[0]] = true, true // no name stands for anybody
	return told
}

// findLost looks whether the team's own state is still there. Documents that are removed are put back by the store, but
// the rest is not, and a run whose state has vanished would seem to be done.
func (w *phaseWatch) findLost() {
	if w.state == nil {
		return
	}
	was, err1 := w.state.Stat()
	now, err2 := os.Lstat(w.site.workspace.Paths().Team())
	if err1 == nil && (errors.Is(err2, fs.ErrNotExist) || err2 == nil && !os.SameFile(was, now)) {
		w.isLost = true
	}
}

// verdict is how a run ended of whose state something was found to be gone: what is left says nothing of the rest.
func (w *phaseWatch) verdict(end teammate.End) teammate.End {
	if w.isLost {
		const what = ".team was removed or replaced while the team worked\n"
		end.Code, end.Text = cmp.Or(end.Code, 3), strings.TrimSpace(what+end.Text)
	}
	return end
}

// close looks a last time, at what no phase has ended with.
func (w *phaseWatch) close(ctx context.Context) {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	_ = w.secure(ctx, muster.Lead) // it says itself what it could not do
	w.findLost()
	if w.last == nil {
		return
	}
	now, err := git.TakeFingerprint(ctx, w.repo, w.last, w.skip)
	logDropped(ctx, w.site.log, "looking at the repository after the run", err)
	if err != nil {
		return
	}
	if changes := now.Changes(w.last); len(changes) > 0 && !w.hasTold("", changes) {
		w.site.note(ctx, "", "changed since the last look: "+strings.Join(changes, "; "))
	}
}

func (w *phaseWatch) release() {
	if w.state != nil {
		_ = w.state.Close() // it was only read
	}
}
