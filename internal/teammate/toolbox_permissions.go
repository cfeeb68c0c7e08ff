package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/permissions"
	"muster/internal/redact"
	"muster/internal/requests"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// denials counts how often in a row the same subject was denied to a member, in whatever spelling.
type denials struct {
	last string
	n    int
}

const tellAfter = 3

func (d *denials) count(what string) bool {
	if d.last != what {
		d.last, d.n = what, 0
	}
	d.n++
	return d.n == tellAfter
}

// permits decides by the rules of the user which calls of tools may run, and asks where they say so.
type permits struct {
	claims   *claims
	settings permissions.Settings
	always   []string   // what the user has allowed for good
	extra    []llm.Tool // of an embedder
	requests *requests.Requests
	secrets  *redact.Secrets
	since    float64 // when this process began to run the member
	replies  guarded[replies]
	// repliedAt returns when the model replied last.
	repliedAt func() float64
	denials   guarded[denials]
}

// around returns what decides whether a call may run, nil where every call may. It stands inside of the user's hooks,
// so that it sees what they have made of a call, and outside of the tool. A subagent's tools and those of a landing's
// agents have it too.
func (p *permits) around(t llm.Tool, dir *workdir) func(context.Context, llm.Call, tool.Next) (llm.Result, error) {
	if p.settings.IsIdle() {
		return nil
	}
	spec := t.Spec()
	writes := permissions.IsGuarded(spec.Name) ||
		slices.ContainsFunc(p.extra, func(x llm.Tool) bool { return x.Spec().Name == spec.Name })
	return func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
		p.noteReply(ctx)
		at, err := dir.Workdir(ctx)
		if err != nil {
			return next(ctx, c) // where the tool cannot work, it says so itself
		}
		fitted := code.AsPatch(llm.Call{Name: spec.Name, Input: tool.Fit(t, c.Input)})
		paths := namedPaths(fitted)
		for i := range paths {
			paths[i] = at.Below(paths[i])
		}
		call := permissions.NewCall(fitted.Name, fitted.Input, at.Dir, paths)
		call.Writes = writes && !spec.OnlyReads(c.Input)
		d, refusal := p.settings.Decide(call, nil), ""
		if d.Action == permissions.Ask {
			granted, err := p.granted(ctx)
			if err != nil {
				return llm.Result{}, err
			}
			d = p.settings.Decide(call, granted)
		}
		note := ""
		for isAsked := d.Action == permissions.Ask; isAsked; note = code.ChangedSince {
			change := p.changeOf(ctx, dir, fitted)
			if refusal, err = p.askUser(ctx, c.ID, call, note+change, d); err != nil {
				return llm.Result{}, err
			}
			granted, err := p.granted(ctx)
			if err != nil {
				return llm.Result{}, err
			}
			// The answer is for the change that was shown, and the file may be another one by now.
			isAsked = refusal == "" && p.changeOf(ctx, dir, fitted) != change &&
				p.settings.Decide(call, granted).Action == permissions.Ask
		}
		if d.Action == permissions.Deny || refusal != "" {
			return p.refuse(ctx, c, d, refusal), nil
		}
		p.recordDecision(ctx, c, d, "allowed", d.Rule)
		result, err := next(ctx, c)
		isDone := err == nil && !result.IsError
		if isDone && slices.Contains([]string{"complete_task", "release_task"}, spec.Name) {
			p.takeBackLost(ctx)
		}
		return result, err
	}
}

func (p *permits) recordDecision(ctx context.Context, c llm.Call, d permissions.Decision, outcome, rule string) {
	if d.IsDefault {
		return
	}
	p.claims.diary.event(ctx, journal.PermissionDecided, map[string]any{"tool": c.Name, "call": c.ID,
		"outcome": outcome, "what": p.secrets.String(d.Subject), "rule": p.secrets.String(rule)})
}

// granted returns what the user has allowed for good, and for this run. The requests are the record of the latter:
// every process of the team reads them, a run that was resumed has them still, and the next run begins after them.
// Those that a member has answered count for nothing.
func (p *permits) granted(ctx context.Context) ([]string, error) {
	run, errRun := p.claims.run(ctx)
	all, err := p.requests.List(ctx)
	if err = cmp.Or(errRun, err); err != nil {
		return nil, err
	}
	granted := slices.Clone(p.always)
	for _, r := range all {
		isApproved := r.Kind == muster.AskPermission && r.Status == muster.RequestApproved &&
			r.ResolvedBy == muster.User
		if isApproved && r.Scope != muster.ScopeOnce && r.CreatedAt >= run.StartedAt {
			granted = append(granted, r.Asks...)
		}
	}
	return granted, nil
}

// askUser asks the user about the call with the id, and waits for the answer. refusal says why the call may not run; ""
// if it may.
//
// Nobody waits for ever: the request has a deadline, and whoever waits ends it then. A member that loses its task, or
// whose turn is stopped, takes its question back.
func (p *permits) askUser(
	ctx context.Context, id string, c permissions.Call, change string, d permissions.Decision,
) (refusal string, err error) {
	if p.settings.Wait < 0 {
		return "nobody can be asked in this run", nil
	}
	wait := cmp.Or(p.settings.Wait, requests.PermissionWait)
	if helperOf(ctx) != nil {
		id = "" // it is unique in the helper's conversation only, which ends with the process
	}
	t, _ := p.claims.CurrentTask()
	// A grant is stored, and what has a secret is not.
	asks := slices.DeleteFunc(d.Grant, func(g string) bool { return p.secrets.String(g) != g })
	what := d.Subject
	if c.Command == "" && what != c.Tool {
		what = c.Tool + " " + what
	}
	r, err := p.question(ctx, muster.Request{Kind: muster.AskPermission, From: p.claims.name, To: muster.User,
		TaskID: t.ID, Fence: t.Fence, Reason: p.secrets.String(fmt.Sprintf("%s (%s)", what, reason(d))),
		Plan: p.secrets.String(c.Command), Change: change, Asks: asks, CallID: id,
		Deadline: muster.UnixTime(time.Now().Add(wait))})
	if err != nil {
		return "", err
	}
	defer p.claims.presence.showActivity(ctx, "waits for your answer to "+string(r.ID))()
	asked := r.ID
	if r, err = p.claims.plans.await(ctx, asked); err != nil {
		// Where the process is stopped the question stays: the next one asks the same. Else nobody needs the answer.
		cause, later := context.Cause(ctx), context.WithoutCancel(ctx)
		if cause == nil || errors.Is(cause, muster.CauseTurn) || errors.Is(cause, muster.CauseShutdown) {
			err := p.requests.Withdraw(later, p.claims.name, "not run, its turn was stopped",
				func(r muster.Request) bool { return r.ID == asked })
			p.claims.diary.dropped(later, "withdrawing a question", err)
		} else if id != "" {
			p.claims.phase.noteOpen(id)
		}
		return "", err
	}
	switch isFirst, err := p.requests.Take(ctx, asked); {
	case err != nil:
		return "", err
	case !isFirst: // the answer was for another call
		return p.askUser(ctx, id, c, change, d)
	}
	switch {
	case r.Status == muster.RequestApproved:
		return "", nil
	case r.ResolvedBy == muster.User:
		return "the user said no: " + r.Response, nil
	}
	return cmp.Or(r.Response, "nobody answered"), nil
}

// maxChange limits the lines of the diff in a permission request, in bytes.
const maxChange = 16_000

// changeOf returns the difference that a call would make in the working directory, "" where it is none that edits
// files. Where the call would fail the difference is what its input says.
func (p *permits) changeOf(ctx context.Context, dir *workdir, c llm.Call) string {
	changes := code.Preview(ctx, dir, c)
	if changes == nil {
		return code.UnifiedCall(c, p.secrets.String, maxChange)
	}
	diff, _, _ := code.Unified(changes, p.secrets.String, maxChange)
	return diff
}

// lostReplies is after how many replies the questions of an earlier process of the member are taken back: its model
// has read that their calls have not run, and has not repeated them.
const lostReplies = 3

// noteReply counts the replies whose calls come, and takes back lost questions when it is time: under the lock, so that
// no call of the same reply waits for one of them.
func (p *permits) noteReply(ctx context.Context) {
	at := p.repliedAt()
	p.replies.change(func(r *replies) {
		if r.n == lostReplies || at == r.last {
			return
		}
		if r.last, r.n = at, r.n+1; r.n == lostReplies {
			p.takeBackLost(ctx)
		}
	})
}

// replies are how many the model has given in this process, up to lostReplies, and when the last of them came.
type replies struct {
	n    int
	last float64
}

// takeBackLost takes back the questions of an earlier process of the member, and the answers to them.
func (p *permits) takeBackLost(ctx context.Context) {
	err := p.requests.Withdraw(ctx, p.claims.name, "not run, its process had ended", p.isLost)
	all, errList := p.requests.List(ctx)
	for _, r := range all {
		if p.isLost(r) && hasAnswer(r) {
			_, errTake := p.requests.Take(ctx, r.ID)
			err = cmp.Or(err, errTake)
		}
	}
	p.claims.diary.dropped(ctx, "taking back lost questions", cmp.Or(err, errList))
}

// question asks, or returns the same question of before a restart, which the user may have answered meanwhile: the user
// sees one, whose deadline stays. One that is past its deadline, or about another change of the same call, is replaced.
func (p *permits) question(ctx context.Context, ask muster.Request) (muster.Request, error) {
	run, errRun := p.claims.run(ctx)
	all, err := p.requests.List(ctx)
	if err = cmp.Or(errRun, err); err != nil {
		return ask, err
	}
	isSameCall := func(r muster.Request) bool {
		return p.isLost(r) && r.TaskID == ask.TaskID && r.Reason == ask.Reason && r.Plan == ask.Plan &&
			slices.Equal(r.Asks, ask.Asks)
	}
	change, now := strings.TrimPrefix(ask.Change, code.ChangedSince), muster.UnixTime(time.Now())
	for _, r := range all {
		mayWait := r.Status == muster.RequestPending && (r.Deadline == 0 || r.Deadline > now)
		isSame := isSameCall(r) && strings.TrimPrefix(r.Change, code.ChangedSince) == change
		if isSame && (mayWait || hasAnswer(r) && r.CreatedAt >= run.StartedAt) {
			return r, nil
		}
	}
	if err := p.requests.Withdraw(ctx, p.claims.name, "asked anew", isSameCall); err != nil {
		return ask, err
	}
	return p.requests.Ask(ctx, ask)
}

// isLost reports whether a request is a question of an earlier process of the member, which has ended before an answer.
func (p *permits) isLost(r muster.Request) bool {
	return r.Kind == muster.AskPermission && r.From == p.claims.name && r.CreatedAt <= p.since && r.TakenAt == 0
}

// hasAnswer reports whether the user has answered a question in a way that its call can still take: an older muster did
// not note which answers were taken.
func hasAnswer(r muster.Request) bool { return r.ResolvedBy == muster.User && r.CallID != "" }

// notRun returns the result of a call which the process ended before the answer of the user came. ok is false for other
// calls. repliedAt is when the model asked for the call: its ID may be that of an earlier one.
func (p *permits) notRun(ctx context.Context, id string, repliedAt float64) (result llm.Result, ok bool, err error) {
	all, err := p.requests.List(ctx)
	ok = slices.ContainsFunc(all, func(r muster.Request) bool {
		return p.isLost(r) && r.CallID == id && r.CreatedAt >= repliedAt
	})
	return llm.ErrorResult("Not run: the process ended before the user answered. " +
		"Call it again unless it is no longer needed."), ok, err
}

func reason(d permissions.Decision) string {
	if d.Why != "" {
		return d.Rule + ": " + d.Why
	}
	return d.Rule
}

// refuse returns the result of a call that may not run, and tells the user of repeated refusals. The model is told what
// to do instead, because otherwise it tries the same in other words.
func (p *permits) refuse(ctx context.Context, c llm.Call, d permissions.Decision, why string) llm.Result {
	what, rule := fmt.Sprintf("%q is refused by %s", d.Subject, reason(d)), reason(d)
	if why != "" {
		what = fmt.Sprintf("%q had to be asked about (%s), and %s", d.Subject, reason(d), why)
		rule += ", and " + why
	}
	p.recordDecision(ctx, c, d, "denied", rule)
	isRepeated := false
	if p.denials.change(func(n *denials) { isRepeated = n.count(d.Subject) }); isRepeated {
		text := fmt.Sprintf("%s was refused the same %d times: %s", p.claims.name, tellAfter, what)
		p.claims.diary.event(ctx, journal.RunNote, map[string]any{"text": p.secrets.String(text)})
	}
	return llm.ErrorResult("%s was not called: %s. The user's rules refuse it in any form. Continue without it. "+
		"If your task needs it, say in your summary what is left to do.",
		c.Name, text.EscapeTags(what))
}
