package teamtools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/llm"
	"muster/tool"
)

// spawn starts a teammate. It only records the new member: a supervisor sees the record and starts it, in this process
// or in another one.
func (k toolset) spawn() llm.Tool {
	type in struct {
		Name        muster.Name `json:"name" jsonschema:"lower-case letters, digits, hyphens"`
		Role        string      `json:"role"`
		Prompt      string      `json:"prompt" jsonschema:"background only: work goes in tasks"`
		Model       string      `json:"model,omitempty"`
		RequirePlan bool        `json:"require_plan,omitempty"`
	}
	return textTool("spawn_teammate",
		func(ctx context.Context, in in) (string, error) {
			m, err := k.caller.Spawn(ctx, muster.Member{Name: in.Name, Role: in.Role, Prompt: in.Prompt,
				Model: in.Model, RequirePlan: in.RequirePlan})
			return answer(err, "Spawned %s (%s).", m.Name, m.Role)
		})
}

// listTeammates lists everybody but the lead, which is the only one that has this tool. Those that have shut down are
// listed too, because they can be spawned again.
func (k toolset) listTeammates() llm.Tool {
	return textTool("list_teammates",
		func(ctx context.Context, _ struct{}) (string, error) {
			all, err := k.Roster.List(ctx)
			return answerLines(all, err, "There are no teammates yet.", func(m muster.Member) string {
				if m.Name == muster.Lead {
					return ""
				}
				s := fmt.Sprintf("%s (%s) %s", m.Name, m.Role, m.Status)
				if m.Doing != "" {
					s += ": " + m.Doing
				} else if m.IdleReason != "" && m.Status == muster.Idle {
					s += ": " + string(m.IdleReason)
				}
				return s
			})
		}, tool.ReadOnly())
}

// wait lets the lead sleep until something needs it, which costs nothing: no model is asked meanwhile. After a crash
// the call continues to wait.
func (k toolset) wait() llm.Tool {
	type in struct {
		For string `json:"for,omitempty" jsonschema:"landing: also wake at each landing"`
	}
	const landing = "landing"
	wait := resultTool("wait",
		func(ctx context.Context, in in) (llm.Result, error) {
			if in.For != "" && in.For != landing {
				return llm.ErrorResult("for is landing or is left out."), nil
			}
			return k.caller.Wait(ctx, in.For == landing)
		}, tool.Polls())
	return tool.Recoverable(wait, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
		if !resume {
			return llm.Result{}, false, nil
		}
		r, err := k.caller.Wait(ctx, in.For == landing)
		return r, true, err
	})
}

// idle ends the work of a teammate that has nothing to do, until mail or a task wakes it. The other calls of the same
// reply still run.
func (k toolset) idle() llm.Tool {
	type in struct {
		Reason string `json:"reason,omitempty"`
	}
	return textTool("idle",
		func(ctx context.Context, in in) (string, error) {
			return answer(k.caller.Idle(in.Reason), "Going idle.")
		}, tool.Polls())
}

// sendMessage sends mail to one member. The caller is told if the receiver has shut down, and so does not wait for an
// answer that cannot come.
func (k toolset) sendMessage() llm.Tool {
	type in struct {
		To      muster.Name `json:"to" jsonschema:"a teammate's name, lead, user, or all (every teammate)"`
		Content string      `json:"content"`
	}
	return textTool("send_message",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			var err error
			if in.To, err = k.recipient(ctx, in.To, me); err != nil {
				return "", err
			}
			m, err := k.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: me, To: in.To,
				Content: in.Content})
			if err != nil {
				return "", err
			}
			// The mail is sent in any case: it is stored, and an error here must not make the model send it again.
			if to, err := k.Roster.Get(ctx, in.To); err == nil && to.Status == muster.Shutdown {
				return fmt.Sprintf("%s has shut down: it reads this when it is spawned again. %s", m.To,
					spawnHint(me)), nil
			}
			k.caller.Asked(in.To, in.Content)
			return fmt.Sprintf("Sent to %s.", m.To), nil
		})
}

// The names by which models call the lead and the user, as muster.RoleKey returns them.
var (
	leadNames = []string{"the-lead", "leader", "team-lead", "teamlead", "team-leader", "tech-lead", "lead-agent",
		"main", "main-agent", "manager", "coordinator", "orchestrator", "supervisor", "boss"}
	userNames = []string{"the-user", "human"}
)

// maxNamed is how many members an error names.
const maxNamed = 20

// recipient returns the member that a model means by a name: one of that name, the lead or the user by another word, or
// the only member of a role. The error names the members that there are.
func (k toolset) recipient(ctx context.Context, name, me muster.Name) (muster.Name, error) {
	if known, _, err := k.Roster.Known(ctx, name); err != nil || known && name != me {
		return name, err
	}
	all, err := k.Roster.List(ctx)
	if err != nil {
		return "", err
	}
	word, _, _ := strings.Cut(strings.Trim(string(name), "@<>`'\" "), "@") // as in alice@team
	key := muster.RoleKey(word)
	var named, ofRole []muster.Name
	var others []string
	for _, m := range slices.Concat(all, []muster.Member{{Name: muster.User}}) {
		isThere := m.Status != muster.Shutdown
		if muster.RoleKey(string(m.Name)) == key {
			named = append(named, m.Name)
		}
		if isThere && m.Role != "" && muster.RoleKey(m.Role) == key {
			ofRole = append(ofRole, m.Name)
		}
		if isThere && m.Name != me {
			others = append(others, string(m.Name))
		}
	}
	switch {
	case len(named) == 1:
		name = named[0]
	case len(named) == 0 && len(ofRole) == 1:
		name = ofRole[0]
	case slices.Contains(leadNames, key):
		name = muster.Lead
	case slices.Contains(userNames, key):
		name = muster.User
	}
	if known, _, err := k.Roster.Known(ctx, name); err != nil || known && name != me {
		return name, err
	}
	if n := len(others) - maxNamed; n > 0 {
		others = append(others[:maxNamed], fmt.Sprintf("and %d more", n))
	}
	refusal := muster.Errorf(muster.NotFound, "no mail sent: there is no member %q", string(name))
	if name == me {
		refusal = muster.Errorf(muster.Invalid, "no mail sent: that is you (%s), name another member", me)
	}
	return "", refusal.WithHint("the others: %s", strings.Join(others, ", "))
}

// readInbox shows the mail of the caller. Reading it delivers nothing: mail is delivered between two rounds.
func (k toolset) readInbox() llm.Tool {
	return textTool("read_inbox",
		func(ctx context.Context, _ struct{}) (string, error) { return k.caller.Inbox(ctx) },
		tool.ReadOnly(), tool.Polls())
}

// broadcast sends the same mail to every teammate that is not shut down, but not to the caller. A teammate that joins
// while it runs does not get it. The caller is told who has shut down in this run and did not get it either.
func (k toolset) broadcast() llm.Tool {
	type in struct {
		Content string `json:"content"`
	}
	return textTool("broadcast",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			run, runErr := k.Run(ctx)
			all, err := k.Roster.List(ctx)
			if err = cmp.Or(runErr, err); err != nil {
				return "", err
			}
			var to []muster.Name
			var names, gone []string
			for _, m := range all {
				switch {
				case m.Name == me:
				case m.Status != muster.Shutdown:
					to, names = append(to, m.Name), append(names, string(m.Name))
				case m.Since >= run.StartedAt && m.Name != muster.Lead:
					gone = append(gone, string(m.Name))
				}
			}
			missed := ""
			if len(gone) > 0 {
				missed = fmt.Sprintf("These have shut down: %s. %s", strings.Join(gone, ", "), spawnHint(me))
			}
			if len(to) == 0 {
				return "", muster.Errorf(muster.Invalid, "no mail was sent: there is no living teammate").
					WithHint("%s", missed)
			}
			_, err = k.Post.Broadcast(ctx, me, in.Content, to)
			text := fmt.Sprintf("Sent to %s. %s", strings.Join(names, ", "), missed)
			return answer(err, "%s", strings.TrimSpace(text))
		})
}

func spawnHint(caller muster.Name) string {
	if caller == muster.Lead {
		return "To start it again call spawn_teammate with its name."
	}
	return "The lead can start it again (spawn_teammate with its name)."
}

// submitPlan asks the lead for approval of a plan, and waits for the decision. After a crash the call continues to wait
// for the same decision.
func (k toolset) submitPlan() llm.Tool {
	type in struct {
		Plan string `json:"plan" jsonschema:"what you will change, where, and how it can be undone"`
	}
	submit := resultTool("submit_plan",
		func(ctx context.Context, in in) (llm.Result, error) {
			return k.caller.Plan(ctx, in.Plan)
		})
	return tool.Recoverable(submit, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
		// Without a claimed task the plan is for a claim that was lost, and nobody waits for its approval.
		if _, ok := k.caller.CurrentTask(); !ok || !resume {
			return llm.Result{}, false, nil
		}
		r, err := k.caller.Plan(ctx, in.Plan)
		return r, true, err
	})
}

// reviewPlan decides on a plan. Only the first decision counts; a later one is told what stands.
func (k toolset) reviewPlan() llm.Tool {
	type in struct {
		RequestID muster.RequestID `json:"request_id"`
		Approve   bool             `json:"approve"`
		Feedback  string           `json:"feedback,omitempty"`
	}
	return textTool("review_plan",
		func(ctx context.Context, in in) (string, error) {
			r, err := k.Requests.Get(ctx, in.RequestID)
			if err == nil && r.Kind != muster.AskPlan {
				err = muster.Errorf(muster.Invalid, "request %s is no plan but a %s request", r.ID, r.Kind)
			}
			if err != nil {
				return "", err
			}
			// The decision is one write: of two reviews at the same time one counts, and the other reads which.
			r, now, err := k.Requests.Decide(ctx, in.RequestID, k.caller.Me().Name, in.Approve, in.Feedback)
			if err == nil && !now {
				return fmt.Sprintf("Request %s was %s by %s before: that stands.", r.ID, r.Status, r.ResolvedBy), nil
			}
			return answer(err, "Request %s of %s is %s.", r.ID, r.From, r.Status)
		})
}

// requestShutdown asks a teammate to shut down. It only records the request: the teammate answers it, an idle one
// without asking its model, and a supervisor ends one that has not answered in time.
func (k toolset) requestShutdown() llm.Tool {
	type in struct {
		Teammate muster.Name `json:"teammate"`
		Reason   string      `json:"reason,omitempty"`
		Force    bool        `json:"force,omitempty" jsonschema:"do not ask"`
	}
	return textTool("request_shutdown",
		func(ctx context.Context, in in) (string, error) {
			m, err := k.Roster.Get(ctx, in.Teammate)
			switch {
			case err != nil:
				return "", err
			case m.Name == muster.Lead:
				return "", muster.Errorf(muster.Invalid,
					"the lead ends its run by ending its turn when no task is open")
			case m.Status == muster.Shutdown:
				return fmt.Sprintf("%s is shut down already.", m.Name), nil
			}
			r, err := k.Requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: k.caller.Me().Name, To: m.Name,
				Reason: in.Reason, Force: in.Force})
			return answer(err, "Shutdown request %s sent to %s.", r.ID, m.Name)
		})
}

// respondShutdown answers a shutdown request. A refusal needs a reason, which is mailed to the lead. After a grant the
// life of the caller ends with this round of tools.
func (k toolset) respondShutdown() llm.Tool {
	type in struct {
		RequestID muster.RequestID `json:"request_id"`
		Approve   bool             `json:"approve"`
		Reason    string           `json:"reason,omitempty" jsonschema:"why not now"`
	}
	return textTool("respond_shutdown",
		func(ctx context.Context, in in) (string, error) {
			if !in.Approve && in.Reason == "" {
				return "", muster.Errorf(muster.Invalid, "say why not: reason is empty")
			}
			text := "Refused; go on."
			if in.Approve {
				text = "You shut down after this."
			}
			return text, k.caller.Leave(ctx, in.RequestID, in.Approve, in.Reason)
		})
}
