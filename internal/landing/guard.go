package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
func (l *Lander) look(ctx context.Context) (tip string, d *Displaced, err error) {
	if l.options.Tips == nil {
		tip, err = l.resolve(ctx)
		return tip, nil, err
	}
	for {
		// The target is read before the record: whatever a landing has moved it to was announced before. A landing that
		// goes on meanwhile may make the older place look wrong, so the target must be where it was after all else.
		at, link, err := l.repo.Branch(ctx, l.options.Target)
		if err != nil {
			return "", nil, err
		}
		tip, d, err = l.compare(ctx, at, link)
		if err != nil || d == nil {
			return tip, nil, err
		}
		nowAt, nowLink, err := l.repo.Branch(ctx, l.options.Target)
		if err != nil || nowAt == at && nowLink == link {
			return "", d, err
		}
	}
}

// compare is look for a target that was found at a commit, and that led to link.
func (l *Lander) compare(ctx context.Context, at, link string) (tip string, d *Displaced, err error) {
	tips, err := l.options.Tips(ctx, l.branch(), nil)
	if err != nil {
		return "", nil, fmt.Errorf("where %s should be cannot be read: %w", l.branch(), err)
	}
	if len(tips) == 0 {
		tip, err = l.resolve(ctx)
		return tip, nil, err
	}
	landed, err := landedCommits(ctx, l)
	if err != nil {
		return "", nil, err
	}
	isTip := func(t muster.Tip) bool { return t.Commit == at }
	// A commit on which something has landed is where the target was, and not where it may be.
	isPast := func(t muster.Tip) bool { return t.Onto == at && landed[t.Commit] }
	if at != "" && link == "" && slices.ContainsFunc(tips, isTip) && !slices.ContainsFunc(tips, isPast) {
		l.goneInCheck.Store(false)
		l.verified.Store(&at)
		return at, nil, nil
	}
	d = &Displaced{At: at, Link: link, branch: l.branch()}
	d.Tip = lastTip(ctx, l, tips, landed, at)
	return "", d, nil
}

// lastTip returns the newest of the tips that was landed. An announced commit was landed when the board says so, or
// when what the target has now was built on it.
func lastTip(ctx context.Context, l *Lander, tips []muster.Tip, landed map[string]bool, at string) string {
	for _, t := range slices.Backward(tips[1:]) {
		if landed[t.Commit] {
			return t.Commit
		}
		if at == "" {
			continue
		}
		if isBelow, err := l.repo.IsAncestor(ctx, t.Commit, at); err == nil && isBelow {
			return t.Commit
		}
	}
	return tips[0].Commit
}

// announce adds the commit that is to land on tip to the tips. What was to land on another tip can land no more: the
// transaction that moves the target names the tip. This is durable before the target moves, so that no process takes
// the landed commit for one that somebody else put there.
//
// The error is errMoved when tip is no tip any more, or one on which something has landed: others have landed since
// this process looked, and the target may have been put back to where it had been then. Then nothing is announced,
// because the tips of theirs would be forgotten, and what they have landed would no longer be on the target.
func (l *Lander) announce(ctx context.Context, tip, commit string) error {
	if l.options.Tips == nil {
		return nil
	}
	landed, err := landedCommits(ctx, l)
	if err != nil {
		return err
	}
	isLate := false
	_, err = l.options.Tips(ctx, l.branch(), func(tips []muster.Tip) []muster.Tip {
		isTip := slices.ContainsFunc(tips, func(t muster.Tip) bool { return t.Commit == tip })
		isPast := slices.ContainsFunc(tips, func(t muster.Tip) bool { return t.Onto == tip && landed[t.Commit] })
		if isLate = !isTip || isPast; isLate {
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
		l.verified.Store(nil) // whatever was known of it is older
		return errMoved
	}
	return err
}

// maxTips is how many commits wait to land on one tip. Each process has one under way, and each failed try leaves one.
const maxTips = 64

// Secure returns where the target is after it has put back one that was displaced. d says what was found. One that the
// user may have moved on purpose is left where it is, and tip is where landings left it.
func (l *Lander) Secure(ctx context.Context) (tip string, d *Displaced, err error) {
	for {
		if tip, d, err = l.look(ctx); err != nil || d == nil {
			return tip, nil, err
		}
		if d.At == "" && d.Link == "" && l.goneInCheck.Load() {
			return "", nil, l.errGone()
		}
		if d.IsUsers, err = mayBeUsers(ctx, l, d); err != nil || d.IsUsers {
			return d.Tip, d, err
		}
		if err = putBack(ctx, l, d); !errors.Is(err, muster.ErrStale) {
			break
		}
	}
	if err != nil {
		return "", d, err
	}
	l.options.Log.WarnContext(ctx, "target put back", "at", d.At, "link", d.Link, "tip", d.Tip, "kept", d.Kept)
	text := d.Error()
	if d.At != "" {
		text += fmt.Sprintf(" (to have it there all the same: muster target --accept %.12s)", d.At)
	}
	return d.Tip, d, tell(ctx, l, text)
}

// IsTakenBack reports whether the target was displaced so that something that landed is no longer on it.
func (l *Lander) IsTakenBack(ctx context.Context) (bool, error) {
	_, d, err := l.look(ctx)
	if err != nil || d == nil || d.Link != "" {
		return false, err
	}
	if d.At == "" {
		return true, nil
	}
	has, err := l.repo.IsAncestor(ctx, d.Tip, d.At)
	return !has, err
}

// putBack moves the target to where landings left it. What it had gets a ref first, so that at no moment a commit has
// none. The error is Stale when the target was moved meanwhile.
func putBack(ctx context.Context, l *Lander, d *Displaced) error {
	name := "target-" + strings.ReplaceAll(l.branch(), "/", "-")
	isOld := false
	var err error
	if d.At != "" {
		if isOld, err = l.repo.IsAncestor(ctx, d.At, d.Tip); err != nil {
			return unavailable(ctx, "git cannot compare commits", err)
		}
	}
	if d.At != "" && !isOld {
		if d.Kept, err = worktree.ArchiveRef(ctx, l.repo, name, d.At); err != nil {
			return err
		}
	}
	// Branches whose names need the target's as a directory, or the other way round, keep it from being made.
	inTheWay, err := git.InTheWay(ctx, l.repo, l.options.Target)
	if err != nil {
		return err
	}
	updates := []git.RefUpdate{{Ref: l.options.Target, New: d.Tip, Old: d.At}}
	for ref, at := range inTheWay {
		if _, err := worktree.ArchiveRef(ctx, l.repo, name, at); err != nil {
			return err
		}
		// In a transaction of its own: git makes no ref in the place of one that the same transaction deletes.
		if err := l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: at}}); err != nil {
			return err
		}
	}
	return l.repo.UpdateRefs(ctx, updates)
}

// mayBeUsers reports whether the user may have moved the target there on purpose: nobody worked when it came there,
// they had it checked out, or the commit is in the history of one of their branches.
func mayBeUsers(ctx context.Context, l *Lander, d *Displaced) (bool, error) {
	if key := l.movedAtRest.Load(); l.wasCheckedOut.Load() || key != nil && *key == d.key() {
		return true, nil
	}
	if d.At == "" || d.Link != "" {
		return false, nil
	}
	refs := l.usersRefs.Load()
	if refs == nil {
		return false, nil
	}
	in := d.At + "\n"
	for _, commit := range *refs {
		in += "^" + commit + "\n"
	}
	// Without output all that the commit has is in the history of one of them.
	out, err := l.repo.Do(ctx, git.Call{Dir: l.repo.CommonDir(), Stdin: in,
		Args: []string{"rev-list", "--max-count=1", "--ignore-missing", "--stdin"}})
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	return err == nil && out == "", nil
}

// AtRest is called while no agent works. A target that is displaced now was moved by the user, or by a program of
// theirs, and landings wait until they have said what they want. A commit in the history of a branch or tag that is
// there now is the user's too.
func (l *Lander) AtRest(ctx context.Context) error {
	refs, err := l.repo.Refs(ctx, "refs/heads/", "refs/tags/", "refs/remotes/")
	if err != nil {
		return err
	}
	maps.DeleteFunc(refs, func(ref, _ string) bool {
		return ref == l.options.Target || strings.HasPrefix(ref, worktree.BranchPrefix)
	})
	l.usersRefs.Store(&refs)
	_, d, err := l.look(ctx)
	if err == nil && d != nil {
		key := d.key()
		l.movedAtRest.Store(&key)
	}
	return err
}

// question asks the user what they want of a target that they may have moved.
func (d *Displaced) question() string {
	return fmt.Sprintf("%s: landings wait until you say what holds. Put it back: muster target --accept %.12s. "+
		"Go on from there: muster target --accept %s", d.Error(), d.Tip, cmp.Or(fmt.Sprintf("%.12s", d.At), "COMMIT"))
}

// tell tells the user and the lead something about the target. It is told when it has happened, so the end of ctx does
// not keep it back.
func tell(ctx context.Context, l *Lander, text string) error {
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if err := l.note(late, text); err != nil || l.options.TellLead == nil {
		return err
	}
	return l.options.TellLead(late, text)
}

// secure puts a displaced target back before the attempt goes on. d is what it found, unless that was the work of
// another lane: then the attempt has no part in it. The error is *Displaced while the user has to say what holds.
func (a *attempt) secure(ctx context.Context) (d *Displaced, err error) {
	_, d, err = a.Secure(ctx)
	switch {
	case err != nil || d == nil:
		return nil, err
	case d.IsUsers:
		return nil, d
	case isOthers(ctx, a, d):
		return nil, nil
	}
	return d, nil
}

// noteGoneInCheck notes that the target has gone while the check ran. The check is the user's own command, so it is
// theirs to bring the target back.
func (a *attempt) noteGoneInCheck(ctx context.Context) {
	at, link, err := a.repo.Branch(ctx, a.options.Target)
	if err == nil && at == "" && link == "" {
		a.goneInCheck.Store(true)
	}
}

// isOthers reports whether what the target was displaced to is the work of another lane than the attempt's own.
func isOthers(ctx context.Context, a *attempt, d *Displaced) bool {
	lanes, err := a.lanes.List(ctx)
	if err != nil || d.At == "" {
		return false
	}
	for _, lane := range lanes {
		if at, err := a.repo.Ref(ctx, "refs/heads/"+lane.Branch); err == nil && at != "" {
			isIn, err := a.repo.IsAncestor(ctx, d.At, at)
			if err != nil || isIn && lane.Name == a.v.Task.Worktree {
				return false
			}
			if isIn {
				return true
			}
		}
	}
	return false
}

// returnDisplaced returns the task to the owner in whose phase the target was displaced.
func (a *attempt) returnDisplaced(ctx context.Context, d *Displaced) error {
	return a.returnTask(ctx, "target", displacedText(d, a.branch()), board.Details{Text: d.Error()})
}

// Target returns the commit from which new work starts: the target's, after one that was displaced was put back. The
// error is NotFound when there is no such branch.
func (l *Lander) Target(ctx context.Context) (string, error) {
	if seen := l.verified.Load(); seen != nil && l.IsUntouched(ctx) {
		return *seen, nil
	}
	tip, _, err := l.Secure(ctx)
	return tip, err
}

// IsUntouched reports whether the target is where this process has seen it last. In most calls it is, and the record of
// where it may be need not be read again.
func (l *Lander) IsUntouched(ctx context.Context) bool {
	seen := l.verified.Load()
	if seen == nil {
		return false
	}
	at, link, err := l.repo.Branch(ctx, l.options.Target)
	return err == nil && link == "" && at == *seen
}

// resolve returns the commit that the target is at, wherever that is.
func (l *Lander) resolve(ctx context.Context) (string, error) {
	tip, err := l.repo.Resolve(ctx, l.options.Target)
	if errors.Is(err, muster.ErrNotFound) {
		return "", l.errGone()
	}
	return tip, err
}

// errGone is the error of a target that is not there.
func (l *Lander) errGone() error {
	return muster.Errorf(muster.NotFound, "the target branch %s is gone", l.branch()).
		WithHint("git branch %s COMMIT brings it back", text.ShellQuote(l.branch()))
}

// branch returns the target's name without refs/heads/.
func (l *Lander) branch() string { return strings.TrimPrefix(l.options.Target, "refs/heads/") }

// TargetState is where the target is, and where landings left it.
type TargetState struct {
	Branch string `json:"branch"`
	At     string `json:"at,omitempty"`   // "" when it is gone
	Link   string `json:"link,omitempty"` // the branch that it leads to, when it was made symbolic
	Tip    string `json:"tip"`            // where landings left it
}

// State returns where the target is, and changes nothing.
func (l *Lander) State(ctx context.Context) (s TargetState, err error) {
	tip, d, err := l.look(ctx)
	if err != nil || d == nil {
		return TargetState{Branch: l.branch(), At: tip, Tip: tip}, err
	}
	return TargetState{Branch: d.branch, At: d.At, Link: strings.TrimPrefix(d.Link, "refs/heads/"), Tip: d.Tip}, nil
}

// Accept makes a commit the one from which landings go on, because the user says so. The target is moved there if it is
// elsewhere.
func (l *Lander) Accept(ctx context.Context, rev string) (s TargetState, err error) {
	commit, err := l.repo.Resolve(ctx, rev)
	if err != nil {
		return s, err
	}
	at, link, err := l.repo.Branch(ctx, l.options.Target)
	if err != nil {
		return s, err
	}
	set := func(tips ...muster.Tip) error {
		now, err := l.options.Tips(ctx, l.branch(), func([]muster.Tip) []muster.Tip { return tips })
		if err == nil && len(now) == 0 {
			err = muster.Errorf(muster.NotFound, "no run has %s for its target", l.branch())
		}
		return err
	}
	tip, d, err := l.look(ctx)
	if err != nil {
		return s, err
	}
	if d != nil {
		tip = d.Tip
	}
	isElsewhere := at != commit || link != ""
	if isElsewhere {
		if err := refuseUsers(ctx, l); err != nil {
			return s, err
		}
	}
	if commit != tip {
		if _, err := l.checkState(ctx, ForgetBase); err != nil {
			return s, err
		}
	}
	if isElsewhere {
		// Before the move, so that no process takes it for one that nobody asked for. The old place stays a tip, in
		// case this process ends in between.
		if err := set(muster.Tip{Commit: tip}, muster.Tip{Commit: commit, Onto: tip}); err != nil {
			return s, err
		}
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: l.options.Target, New: commit, Old: at}})
		if err != nil {
			return s, err
		}
	}
	return TargetState{Branch: l.branch(), At: commit, Tip: commit}, set(muster.Tip{Commit: commit})
}
