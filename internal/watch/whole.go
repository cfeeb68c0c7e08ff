package watch

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/text"
	"muster/team"
)

// teamMsg says how it went to start a team, to stop it or to take its work.
type teamMsg toldMsg

// isAtWork reports whether a process runs the team.
func isAtWork(m *model) bool { return m.hasTeam && m.o.Alive && m.o.Run.EndedAt == 0 }

// hasStopped reports whether a run can go on: it was stopped before its end, or has left tasks open. muster resume has
// the same rule.
func hasStopped(m *model) bool {
	return !m.o.Alive && m.o.Run.StartedAt > 0 && (m.o.Run.EndedAt == 0 || m.isLeft)
}

// hasNone reports whether a new run can begin: there was none, or the last one has ended with nothing left.
func hasNone(m *model) bool { return !m.o.Alive && !hasStopped(m) }

// untakenMsg is what there is to take of the work of a team, nil where git could not tell. It is read by a command of
// its own and not with each overview, because an overview asks no git.
type untakenMsg *team.Untaken

// hasUntaken reports whether there is work to take. Where that cannot be told, as in a checkout without a branch, the
// key is offered: taking it says what is wrong.
func hasUntaken(m *model) bool { return m.landed > 0 && (m.untaken == nil || m.untaken.Commits > 0) }

// readUntaken asks what there is to take when other tasks have landed than at the last time, because git is slow. Who
// knows that something was taken asks with isSure.
func readUntaken(m *model, isSure bool) tea.Cmd {
	n := 0
	for _, t := range m.o.Tasks {
		if t.Landed != nil {
			n++
		}
	}
	if n == m.landed && !isSure {
		return nil
	}
	m.landed = n
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		u, err := t.Untaken(ctx)
		if err != nil {
			return untakenMsg(nil)
		}
		return untakenMsg(&u)
	})
}

// teamKeys are the keys that let a team work, end its work and take it. Those that end or take ask once more, because a
// letter is typed easily.
func teamKeys() []binding {
	isFree := func(m *model) bool { return !m.isBusy }
	canStart := func(m *model) bool { return m.canStart && !m.isBusy }
	// While there are matches N is the key of the search, on either side of the screen.
	isNotSearching := func(m *model) bool { return !isSearching(m) }
	return []binding{
		{"R", "R", "resume", "go on with the team that has stopped, in the background", both(canStart, hasStopped),
			func(m *model) tea.Cmd { return begin(m, "") }},
		{"N", "N", "new run", "start a team in the background: type its goal", both(canStart, hasNone, isNotSearching),
			askGoal},
		{"S", "S", "stop", "stop the team, and keep its state, as muster stop does", both(isFree, isAtWork), askStop},
		{"T", "T", "take", "take what has landed to the branch that you are on, as muster merge does",
			both(isFree, hasUntaken), askMerge},
	}
}

// change does something about the whole team, which may take seconds. Until it has answered, no other such key is
// offered: two starts at once would end in an error for one of them.
func change(m *model, doing string, do func(context.Context, teamAPI) toldMsg) tea.Cmd {
	m.isBusy, m.message = true, toldMsg{text: doing}
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg { return teamMsg(do(ctx, t)) })
}

// begin starts a team, or goes on with the one that has stopped where goal is "".
func begin(m *model, goal string) tea.Cmd {
	doing, done := "the team goes on ...", "the team goes on, in the background"
	if goal != "" {
		doing, done = "the team starts ...", "the team works in the background"
	}
	return change(m, doing, func(ctx context.Context, t teamAPI) toldMsg {
		return told(t.Begin(ctx, goal), "%s", done)
	})
}

// askGoal asks for the goal of a new run.
func askGoal(m *model) tea.Cmd {
	// An empty goal starts nothing: Enter alone takes the question back.
	m.input = &input{prompt: "goal of a new run: ", done: func(text string) tea.Cmd {
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		m.goal = text
		return begin(m, text)
	}}
	m.input.insert(m.goal)
	return nil
}

// askStop asks once more, and stops the team.
func askStop(m *model) tea.Cmd {
	// Any other key than y takes the question back.
	m.input = &input{prompt: "stop the team? y: yes ", key: "y", done: func(string) tea.Cmd {
		return change(m, "the team stops ...", func(ctx context.Context, t teamAPI) toldMsg {
			return told(t.Halt(ctx), "the team has stopped; its state is kept, and R goes on")
		})
	}}
	return nil
}

// askMerge asks once more, and takes what has landed. It shows all that the command has printed: why it was refused is
// said in several lines.
func askMerge(m *model) tea.Cmd {
	// It says what will happen, as far as git could tell.
	what := "what has landed"
	if u := m.untaken; u != nil {
		what = fmt.Sprintf("%s of %s to %s", text.Count(u.Commits, "commit"), m.oneLine(u.Target), m.oneLine(u.Branch))
	}
	m.input = &input{prompt: "take " + what + "? y: yes ", key: "y", done: func(string) tea.Cmd {
		return change(m, "taking what has landed ...", func(ctx context.Context, t teamAPI) toldMsg {
			said, err := t.Merge(ctx)
			if err != nil {
				return toldMsg{text: m.clean(muster.PlainText(err)), bad: true}
			}
			return toldMsg{text: m.clean(said)}
		})
	}}
	return nil
}
