package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/git"
	"muster/internal/text"
	"muster/internal/worktree"
)

// Only landings move the target. Before a landing moves it, it announces the commit in the run's record, so that the
// record names each commit at which the target may be: the tips. An agent's git can move any ref, so a target that is
// at no tip is put back, after where it was has got a ref; or its user is asked, when it may be theirs.

// guard knows where landings left the target: it compares, restores, and waits. It is safe for concurrent use.
type guard struct {
	repo    *git.Repo
	lanes   *worktree.Lanes
	board   *board.Board
	records *records
	options *Options

	waitedFor   sync.Map                          // the obstacles of which people were told
	verified    atomic.Pointer[string]            // the tip at which the target was found last
	movedAtRest atomic.Pointer[string]            // the displacement that was found while no agent worked
	usersRefs   atomic.Pointer[map[string]string] // the user's refs when no agent worked
	goneInCheck atomic.Bool                       // the check has deleted it, which the user has to undo
	// The user has had it checked out since a landing was free to move it: what it was moved to then may be theirs.
	wasCheckedOut atomic.Bool
}

// Displaced says that the target is not where landings left it.
type Displaced struct {
	At     string // the commit that it was found at; "" when it was gone
	Link   string // the ref that it led to, when it was symbolic
	Tip    string // where landings left it
	Kept   string // the ref under which what it had is kept; "" when nothing needs one
	branch string // without refs/heads/
	// IsUsers says that the user may have moved it on purpose, so that it was left where it is.
	IsUsers bool
}

// Error says what happened to the target, and how the user gets the other outcome.
func (d *Displaced) Error() string {
	what := fmt.Sprintf("%s was moved to %.7s", d.branch, d.At)
	switch {
	case d.Link != "":
		what = fmt.Sprintf("%s was made to follow %s", d.branch, strings.TrimPrefix(d.Link, "refs/heads/"))
	case d.At == "":
		what = d.branch + " was deleted"
	}
	if d.IsUsers {
		return fmt.Sprintf("%s, and no landing did that", what)
	}
	what = fmt.Sprintf("%s by something else than a landing and is back at %.7s", what, d.Tip)
	if d.Kept != "" {
		what += ", and what it had is kept as " + d.Kept
	}
	return what
}

// key tells two displacements apart.
func (d *Displaced) key() string { return d.At + " " + d.Link }

// look returns where the target is, when it is at one of the tips or when nothing is remembered of it; else it says
// where it should be. It changes nothing.
func (g *guard) look(ctx context.Context) (tip string, d *Displaced, err error) {
	if g.options.Tips == nil {
		tip, err = g.resolve(ctx)
		return tip, nil, err
	}
	for {
		// The target is read before the record: whatever a landing has moved it to was announced before. A landing that
		// goes on meanwhile may make the older place look wrong, so the target must be where it was after all else.
		at, link, err := g.repo.Branch(ctx, g.options.Target)
		if err != nil {
			return "", nil, err
		}
		tip, d, err = g.compare(ctx, at, link)
		if err != nil || d == nil {
			return tip, nil, err
		}
		nowAt, nowLink, err := g.repo.Branch(ctx, g.options.Target)
		if err != nil || nowAt == at && nowLink == link {
			return "", d, err
		}
	}
}

// compare is look for a target that was found at a commit, and that led to link.
func (g *guard) compare(ctx context.Context, at, link string) (tip string, d *Displaced, err error) {
	tips, err := g.options.Tips(ctx, g.options.branch(), nil)
	if err != nil {
		return "", nil, fmt.Errorf("where %s should be cannot be read: %w", g.options.branch(), err)
	}
	if len(tips) == 0 {
		tip, err = g.resolve(ctx)
		return tip, nil, err
	}
	landed, err := g.records.landed(ctx)
	if err != nil {
		return "", nil, err
	}
	if at != "" && link == "" && mayBeAt(tips, landed, at) {
		g.goneInCheck.Store(false)
		g.verified.Store(&at)
		return at, nil, nil
	}
	d = &Displaced{At: at, Link: link, branch: g.options.branch(), Tip: g.lastTip(ctx, tips, landed, at)}
	return "", d, nil
}

// mayBeAt reports whether the target may be at a commit: at a tip on which nothing has landed yet.
func mayBeAt(tips []muster.Tip, landed map[string]bool, at string) bool {
	isTip := func(t muster.Tip) bool { return t.Commit == at }
	isPast := func(t muster.Tip) bool { return t.Onto == at && landed[t.Commit] }
	return slices.ContainsFunc(tips, isTip) && !slices.ContainsFunc(tips, isPast)
}

// lastTip returns the newest of the tips that was landed. An announced commit was landed when the board says so, or
// when what the target has now was built on it.
func (g *guard) lastTip(ctx context.Context, tips []muster.Tip, landed map[string]bool, at string) string {
	for _, t := range slices.Backward(tips[1:]) {
		if landed[t.Commit] {
			return t.Commit
		}
		if at == "" {
			continue
		}
		if isBelow, err := g.repo.IsAncestor(ctx, t.Commit, at); err == nil && isBelow {
			return t.Commit
		}
	}
	return tips[0].Commit
}

// announce adds the commit that is to land on tip to the tips. What was to land on another tip can land no more: the
// transaction that moves the target names the tip. This is durable before the target moves, so that no process takes
// the landed commit for one that somebody else put there.
//
// The error is Stale when tip is no tip any more, or one on which something has landed: others have landed since
// this process looked, and the target may have been put back to where it had been then. Then nothing is announced,
// because the tips of theirs would be forgotten, and what they have landed would no longer be on the target.
func (g *guard) announce(ctx context.Context, tip, commit string) error {
	if g.options.Tips == nil {
		return nil
	}
	landed, err := g.records.landed(ctx)
	if err != nil {
		return err
	}
	isLate := false
	_, err = g.options.Tips(ctx, g.options.branch(), func(tips []muster.Tip) []muster.Tip {
		if isLate = !mayBeAt(tips, landed, tip); isLate {
			return tips
		}
		tips = slices.DeleteFunc(slices.Clone(tips), func(t muster.Tip) bool {
			return t.Commit != tip && t.Onto != tip
		})
		if n := len(tips) - maxTips; n > 0 {
			tips = slices.Delete(tips, 1, 1+n) // the first is where the target is
		}
		return append(tips, muster.Tip{Commit: commit, Onto: tip})
	})
	if err == nil && isLate {
		g.verified.Store(nil) // whatever was known of it is older
		return muster.Errorf(muster.Stale, "%s has moved", g.options.branch())
	}
	return err
}

// maxTips is how many commits wait to land on one tip. Each process has one under way, and each failed try leaves one.
const maxTips = 64

func (g *guard) restore(ctx context.Context) (tip string, d *Displaced, err error) {
	for {
		if tip, d, err = g.look(ctx); err != nil || d == nil {
			return tip, nil, err
		}
		if d.At == "" && d.Link == "" && g.goneInCheck.Load() {
			return "", nil, g.errGone()
		}
		if d.IsUsers, err = g.mayBeUsers(ctx, d); err != nil || d.IsUsers {
			return d.Tip, d, err
		}
		if err = g.putBack(ctx, d); !errors.Is(err, muster.ErrStale) {
			break
		}
	}
	if err != nil {
		return "", d, err
	}
	g.options.Log.WarnContext(ctx, "target put back", "at", d.At, "link", d.Link, "tip", d.Tip, "kept", d.Kept)
	text := d.Error()
	if d.At != "" {
		text += fmt.Sprintf(" (to have it there all the same: muster target --accept %.12s)", d.At)
	}
	// The end of ctx does not keep back what has happened.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if err := g.records.note(late, text); err != nil || g.options.TellLead == nil {
		return d.Tip, d, err
	}
	return d.Tip, d, g.options.TellLead(late, text)
}

func (g *guard) isTakenBack(ctx context.Context) (bool, error) {
	_, d, err := g.look(ctx)
	if err != nil || d == nil || d.Link != "" {
		return false, err
	}
	if d.At == "" {
		return true, nil
	}
	has, err := g.repo.IsAncestor(ctx, d.Tip, d.At)
	return !has, err
}

// putBack moves the target to where landings left it. What it had gets a ref first, so that at no moment a commit has
// none. The error is Stale when the target was moved meanwhile.
func (g *guard) putBack(ctx context.Context, d *Displaced) error {
	name := "target-" + strings.ReplaceAll(g.options.branch(), "/", "-")
	if d.At != "" {
		isOld, err := g.repo.IsAncestor(ctx, d.At, d.Tip)
		if err != nil {
			return unavailable(ctx, "git cannot compare commits", err)
		}
		if !isOld {
			if d.Kept, err = worktree.ArchiveRef(ctx, g.repo, name, d.At); err != nil {
				return err
			}
		}
	}
	// Branches whose names need the target's as a directory, or the other way round, keep it from being made.
	inTheWay, err := git.InTheWay(ctx, g.repo, g.options.Target)
	if err != nil {
		return err
	}
	for ref, at := range inTheWay {
		if _, err := worktree.ArchiveRef(ctx, g.repo, name, at); err != nil {
			return err
		}
		// In a transaction of its own: git makes no ref in the place of one that the same transaction deletes.
		if err := g.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: at}}); err != nil {
			return err
		}
	}
	return g.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: g.options.Target, New: d.Tip, Old: d.At}})
}

// mayBeUsers reports whether the user may have moved the target there on purpose: nobody worked when it came there,
// they had it checked out, or the commit is in the history of one of their branches.
func (g *guard) mayBeUsers(ctx context.Context, d *Displaced) (bool, error) {
	if key := g.movedAtRest.Load(); g.wasCheckedOut.Load() || key != nil && *key == d.key() {
		return true, nil
	}
	if d.At == "" || d.Link != "" {
		return false, nil
	}
	refs := g.usersRefs.Load()
	if refs == nil {
		return false, nil
	}
	in := d.At + "\n"
	for _, commit := range *refs {
		in += "^" + commit + "\n"
	}
	// Without output all that the commit has is in the history of one of them.
	out, err := g.repo.Do(ctx, git.Call{Dir: g.repo.CommonDir(), Stdin: in,
		Args: []string{"rev-list", "--max-count=1", "--ignore-missing", "--stdin"}})
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	return err == nil && out == "", nil
}

func (g *guard) atRest(ctx context.Context) error {
	refs, err := g.repo.Refs(ctx, "refs/heads/", "refs/tags/", "refs/remotes/")
	if err != nil {
		return err
	}
	maps.DeleteFunc(refs, func(ref, _ string) bool {
		return ref == g.options.Target || strings.HasPrefix(ref, worktree.BranchPrefix)
	})
	g.usersRefs.Store(&refs)
	_, d, err := g.look(ctx)
	if err == nil && d != nil {
		key := d.key()
		g.movedAtRest.Store(&key)
	}
	return err
}

// question asks the user what they want of a target that they may have moved.
func (d *Displaced) question() string {
	return fmt.Sprintf("%s: landings wait until you say what holds. Put it back: muster target --accept %.12s. "+
		"Go on from there: muster target --accept %s", d.Error(), d.Tip, cmp.Or(fmt.Sprintf("%.12s", d.At), "COMMIT"))
}

// secure puts a displaced target back before a landing goes on that has the lane. d is what it found, unless that was
// the work of another lane: then the landing has no part in it. The error is *Displaced while the user has to say what
// holds.
func (g *guard) secure(ctx context.Context, lane muster.Name) (d *Displaced, err error) {
	_, d, err = g.restore(ctx)
	switch {
	case err != nil || d == nil:
		return nil, err
	case d.IsUsers:
		return nil, d
	case g.isOthers(ctx, d, lane):
		return nil, nil
	}
	return d, nil
}

// noteGoneInCheck notes that the target has gone while the check ran. The check is the user's own command, so it is
// theirs to bring the target back.
func (g *guard) noteGoneInCheck(ctx context.Context) {
	at, link, err := g.repo.Branch(ctx, g.options.Target)
	if err == nil && at == "" && link == "" {
		g.goneInCheck.Store(true)
	}
}

// isOthers reports whether what the target was displaced to is the work of another lane than own.
func (g *guard) isOthers(ctx context.Context, d *Displaced, own muster.Name) bool {
	lanes, err := g.lanes.List(ctx)
	if err != nil || d.At == "" {
		return false
	}
	for _, lane := range lanes {
		if at, err := g.repo.Ref(ctx, "refs/heads/"+lane.Branch); err == nil && at != "" {
			isIn, err := g.repo.IsAncestor(ctx, d.At, at)
			if err != nil || isIn && lane.Name == own {
				return false
			}
			if isIn {
				return true
			}
		}
	}
	return false
}

// lookAgain forgets where the target was seen: where that was before a landing, it may not be now.
func (g *guard) lookAgain() { g.verified.Store(nil) }

func (g *guard) tip(ctx context.Context) (string, error) {
	if seen := g.verified.Load(); seen != nil && g.isUntouched(ctx) {
		return *seen, nil
	}
	tip, _, err := g.restore(ctx)
	return tip, err
}

// isUntouched is Lander.IsUntouched. In most calls it is, and the record need not be read again.
func (g *guard) isUntouched(ctx context.Context) bool {
	seen := g.verified.Load()
	if seen == nil {
		return false
	}
	at, link, err := g.repo.Branch(ctx, g.options.Target)
	return err == nil && link == "" && at == *seen
}

func (g *guard) resolve(ctx context.Context) (string, error) {
	tip, err := g.repo.Resolve(ctx, g.options.Target)
	if errors.Is(err, muster.ErrNotFound) {
		return "", g.errGone()
	}
	return tip, err
}

func (g *guard) errGone() error {
	return muster.Errorf(muster.NotFound, "the target branch %s is gone", g.options.branch()).
		WithHint("git branch %s COMMIT brings it back", text.ShellQuote(g.options.branch()))
}

// TargetState is where the target is, and where landings left it.
type TargetState struct {
	Branch string `json:"branch"`
	At     string `json:"commit,omitempty"` // "" when it is gone
	Link   string `json:"link,omitempty"`   // the branch that it leads to, when it was made symbolic
	Tip    string `json:"tip"`              // where landings left it
}

func (g *guard) state(ctx context.Context) (s TargetState, err error) {
	tip, d, err := g.look(ctx)
	if err != nil || d == nil {
		return TargetState{Branch: g.options.branch(), At: tip, Tip: tip}, err
	}
	return TargetState{Branch: d.branch, At: d.At, Link: strings.TrimPrefix(d.Link, "refs/heads/"), Tip: d.Tip}, nil
}

func (g *guard) accept(ctx context.Context, rev string) (s TargetState, err error) {
	commit, err := g.repo.Resolve(ctx, rev)
	if err != nil {
		return s, err
	}
	at, link, err := g.repo.Branch(ctx, g.options.Target)
	if err != nil {
		return s, err
	}
	set := func(tips ...muster.Tip) error {
		now, err := g.options.Tips(ctx, g.options.branch(), func([]muster.Tip) []muster.Tip { return tips })
		if err == nil && len(now) == 0 {
			err = muster.Errorf(muster.NotFound, "no run has %s for its target", g.options.branch())
		}
		return err
	}
	tip, d, err := g.look(ctx)
	if err != nil {
		return s, err
	}
	if d != nil {
		tip = d.Tip
	}
	isElsewhere := at != commit || link != ""
	if isElsewhere {
		if err := g.refuseUsers(ctx); err != nil {
			return s, err
		}
	}
	if commit != tip {
		if _, err := g.records.base(ctx, ForgetBase); err != nil {
			return s, err
		}
	}
	if isElsewhere {
		// Before the move, so that no process takes it for one that nobody asked for. The old place stays a tip, in
		// case this process ends in between.
		if err := set(muster.Tip{Commit: tip}, muster.Tip{Commit: commit, Onto: tip}); err != nil {
			return s, err
		}
		err = g.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: g.options.Target, New: commit, Old: at}})
		if err != nil {
			return s, err
		}
	}
	return TargetState{Branch: g.options.branch(), At: commit, Tip: commit}, set(muster.Tip{Commit: commit})
}

// refuseUsers refuses a target that the user has checked out. Checkouts in lanes do not count.
func (g *guard) refuseUsers(ctx context.Context) error {
	path, err := g.lanes.CheckedOutElsewhere(ctx, g.options.Target)
	return cmp.Or(err, errCheckedOut(g.options.Target, path))
}

// mayBegin is refuseUsers before a landing begins: what the target is moved to from now on is not the user's.
func (g *guard) mayBegin(ctx context.Context) error {
	if err := g.refuseUsers(ctx); err != nil {
		return err
	}
	g.wasCheckedOut.Store(false)
	g.waitedFor.Clear() // the next wait is for another checkout, and people are told
	return nil
}

// obstacle is the error of a landing that has to wait for the user: the target is checked out, or was moved.
type obstacle interface {
	error
	key() string      // tells obstacles apart
	question() string // for the user
}

// obstaclePoll is the time between two looks at an obstacle.
const obstaclePoll = 2 * time.Second

// wait waits until an obstacle is gone, or until the claim is over. Looking at what has landed is what a user does
// first, and no reason to lose work.
func (g *guard) wait(ctx context.Context, id muster.TaskID, claim int, o obstacle) error {
	// Only the first landing that waits for it says so.
	if _, isSaid := g.waitedFor.LoadOrStore(o.key(), nil); !isSaid {
		if err := g.records.note(ctx, o.question()); err != nil {
			g.waitedFor.Delete(o.key()) // the next one that waits says it
			return err
		}
	}
	// No ref is watched: a poll costs one look, and people move branches seldom.
	for isGone := false; !isGone; isGone = g.isGone(ctx, o) {
		if clock.Sleep(ctx, obstaclePoll) != nil {
			return context.Cause(ctx)
		}
		if t, err := g.board.Get(ctx, id); err != nil || t.Fence != claim || !t.Claimed() {
			break // the next try says what became of it
		}
	}
	g.waitedFor.Delete(o.key()) // a landing that still waits, or waits next, says so
	return nil
}

// isGone reports whether an obstacle is gone. What git cannot tell now is asked again.
func (g *guard) isGone(ctx context.Context, o obstacle) bool {
	if _, ok := o.(*checkedOutError); ok {
		g.wasCheckedOut.Store(true)
		path, err := g.lanes.CheckedOutElsewhere(ctx, g.options.Target)
		return err == nil && path != o.key()
	}
	_, now, err := g.look(ctx)
	return err == nil && (now == nil || now.key() != o.key())
}
