package watch

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// answer decides a request. Where somebody else was first, in another face or the lead itself, that decision stands,
// and the user is told whose it was and what it said. Nothing is shown as decided before the record says so: the list
// is made of the next overview, which the event of the decision brings.
func answer(m *model, r muster.Request, approve bool, scope muster.RequestScope, words string) tea.Cmd {
	now := m.o.Now
	m.answered = m.detail.key
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		got, isFirst, err := t.Answer(ctx, r.ID, approve, scope, strings.TrimSpace(words))
		if err != nil || isFirst {
			return told(err, "%s of %s is %s%s", view.Question(r), text.OneLine(string(r.From)), got.Status,
				view.Longer(got.Scope))
		}
		s := told(nil, "%s", view.DecidedBefore(got, now))
		s.bad = approve != (got.Status == muster.RequestApproved)
		return s
	})
}

// askText asks for the words of an answer. The question stays where it can be read. The request is the one that was
// shown when the key was pressed, whatever a refresh brings while the user types. A rejection without a reason is not
// sent: the member could only guess what to change.
func askText(m *model, prompt string, approve bool) tea.Cmd {
	r := *m.detail.question()
	m.input = &input{prompt: prompt, done: func(words string) tea.Cmd {
		if !approve && strings.TrimSpace(words) == "" {
			from := text.OneLine(string(r.From))
			m.message = toldMsg{text: "not rejected: say why, so that " + from + " can do better", bad: true}
			return nil
		}
		return answer(m, r, approve, muster.ScopeOnce, words)
	}}
	return nil
}

// retry lets a task that was given up be tried again.
func retry(m *model) tea.Cmd {
	id := m.detail.taskID()
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		return told(t.Retry(ctx, id), "task %d is pending again", id)
	})
}

// askFilter asks for the filter of the list that has the focus. It is filtered while it is typed, and Esc clears it.
// Enter keeps it, also when the board becomes a tree, and the title of the list says what is left out.
func askFilter(m *model) tea.Cmd {
	// The focus stays on the list while it is typed, also where no row is left of it.
	pane := m.focus
	set := func(text string) {
		m.lists[pane].filter = strings.TrimSpace(text)
		m.setRows()
		m.focus, m.last = pane, pane
	}
	m.input = &input{prompt: "filter: ", changed: set, cancelled: func() { set("") },
		done: func(string) tea.Cmd { return m.show() }}
	m.input.insert(m.lists[pane].filter)
	return m.show()
}

// writeMail asks for a mail to the member that is shown, or to whose work is shown; otherwise to the lead.
func writeMail(m *model) tea.Cmd {
	to := muster.Lead // who knows whom it concerns
	if r := m.detail.question(); r != nil {
		to = r.From
	} else if t := m.task(m.detail.taskID()); t != nil {
		to = cmp.Or(t.Owner, to)
	} else if x := m.detail.row.member; x != nil {
		to = x.Owner()
	}
	// It is addressed to whom the prompt names, whatever is selected when it is sent.
	name := text.OneLine(string(to))
	m.input = &input{prompt: fmt.Sprintf("mail to %s: ", name), done: func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
			return told(t.Send(ctx, to, text), "mail sent to %s", name)
		})
	}}
	return nil
}
