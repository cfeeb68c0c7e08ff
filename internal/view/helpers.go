package view

import (
	"encoding/json"
	"slices"
	"strings"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/journal"
)

// helperOf returns the name of the helper that an event tells of. It is "" for what a member does itself, and for
// events of older versions, whose helpers have no name.
func helperOf(e muster.Event) muster.Name { return muster.Name(text.OneLine(e.Text("agent"))) }

// helperLabel returns the name of a helper as it stands below that of its member: "  explore-1".
func helperLabel(name muster.Name) string {
	if _, rest, ok := muster.HelpedBy(name); ok {
		return "  " + string(rest)
	}
	return "  " + string(name)
}

func (m *Activity) label() string {
	if m.worksFor != "" {
		return helperLabel(m.name)
	}
	return string(m.name)
}

// applyToHelper updates the row of a helper with an event of it.
func (l *Presence) applyToHelper(e muster.Event) {
	name := helperOf(e)
	m, isShown := l.Find(name), false
	if isShown = m != nil; !isShown {
		m = &Activity{name: name, worksFor: e.Member, role: text.OneLine(e.Text("role")), state: LookWorking}
	}
	switch {
	case name == "":
		return
	case e.Kind == journal.AgentEnded:
		l.endHelpers(func(h *Activity) bool { return h == m })
		return
	case e.Kind == journal.AgentStarted:
		m.model, m.Doing = e.Text("model"), "thinks"
	case e.Kind == journal.ToolStarted:
		m.Doing = strings.TrimSpace(text.OneLine(e.Text("tool")) + " " + text.OneLine(e.Text("text")))
	case !isShown: // it may have ended: only what begins shows a helper
		return
	case e.Kind == journal.ToolEnded:
		m.Doing = "thinks"
	case e.Kind == journal.TurnEnded:
		m.turn = turnOf(e)
		return
	}
	m.task, m.Since = e.Task, muster.Time(e.At)
	l.add(m)
}

// endHelpers ends the rows of helpers. What they have cost is their member's from now on, so that the rows always have
// all that was spent.
func (l *Presence) endHelpers(has func(*Activity) bool) {
	l.members = slices.DeleteFunc(l.members, func(h *Activity) bool {
		if h.worksFor == "" || !has(h) {
			return false
		}
		if cost, isKnown := l.costs[h.name]; isKnown {
			l.costs[h.worksFor] = l.costs[h.worksFor].Plus(cost)
			delete(l.costs, h.name)
		}
		return true
	})
}

// AddHelpers adds the helpers that work now to the members, each below the member for which it works. That of a member
// without a living process works no more, whatever its last event was.
func (o *Overview) AddHelpers() {
	var all []Member
	for _, m := range o.Members {
		all = append(all, m)
		if !m.Alive || m.Status != muster.Working {
			continue
		}
		for _, h := range o.Presence.members {
			if h.worksFor != m.Name {
				continue
			}
			of, _ := json.Marshal(m.Name) // a text always encodes
			all = append(all, Member{Alive: true, WorksFor: m.Name, Member: muster.Member{Name: h.name, Role: h.role,
				Status: muster.Working, Model: h.model, Task: h.task, Turns: h.turn, Since: muster.UnixTime(h.Since),
				Host: m.Host, Extra: muster.Extra{"works_for": of}}})
		}
	}
	if all != nil {
		o.Members = all
	}
}

// AsItIs returns a member as it is now. One without a row any more is a helper that has ended.
func (o Overview) AsItIs(m Member) Member {
	i := slices.IndexFunc(o.Members, func(x Member) bool { return x.Name == m.Name })
	if i >= 0 {
		return o.Members[i]
	}
	m.Status = muster.Shutdown
	return m
}

// Label returns the name of a member as it stands in lists. That of a helper is indented.
func (m Member) Label() string {
	if m.WorksFor != "" {
		return helperLabel(m.Name)
	}
	return string(m.Name)
}

// Owner returns the member itself, or the one for which a helper works: who reads mail about it.
func (m Member) Owner() muster.Name {
	if m.WorksFor != "" {
		return m.WorksFor
	}
	return m.Name
}

// CostOf returns what the row of a member has cost. What a helper with a row costs is not in that of its member, so
// that the rows add up.
func (o Overview) CostOf(m Member) spend.Sum {
	if m.WorksFor != "" {
		return o.Spending.Agents[m.Name].Sum
	}
	return o.Spending.Own(m.Name, func(agent muster.Name) bool {
		return slices.ContainsFunc(o.Members, func(x Member) bool { return x.Name == agent })
	})
}
