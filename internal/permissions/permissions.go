// Package permissions decides which calls of tools may run: by rules that allow them, ask the user about them or deny
// them, and by a mode that says what holds where no rule does.
//
// A Policy has the mode and the rules. Decide returns a Decision for a Call, with the rule that made it. A rule is for
// a tool, and may name a command, a file or a pattern. Deny is stronger than ask, and ask is stronger than allow.
// Commands of the shell are compared as package shellcommands names them: every command of a script must be allowed,
// and one that is denied denies the whole. What a command may start, and what cannot be known, is asked about where a
// rule to deny or to ask might be for it. What cannot be known is never allowed.
//
// Three comparisons keep the two ways to err apart. A rule that denies or asks is lenient: it is also for other
// spellings of what it names, and a match that is only possible makes a question of it. A rule that allows is strict:
// it is for just its words, and only where all of a script is known. And a grant, which is what the user said yes to
// for longer, is compared as a text: it is for the same command again, and for nothing that looks like it.
//
// These invariants hold:
//
//   - More rules that deny or ask never allow a call that was not allowed before.
//   - A rule that allows, or a grant, never allows what a rule denies.
//   - What cannot be known is allowed by the mode auto alone, and only where no rule could be for it.
//   - A decision depends on the call and the policy only: not on time, and on no file but for where links lead.
//
// The policy is no boundary: a program that may run can do whatever its rights let it. The boundary is the sandbox.
// Whom a question goes to, and what follows from its answer, does not belong here.
package permissions

import (
	"cmp"
	"slices"
	"strings"

	"muster/internal/shellcommands"
	"muster/internal/text"
)

// Action is what becomes of a call.
type Action int

// The actions, the weakest first.
const (
	Allow Action = iota
	Ask
	Deny
)

// String returns the action as files name it.
func (a Action) String() string { return []string{"allow", "ask", "deny"}[a] }

// Mode says what holds where no rule does.
type Mode string

// The modes.
const (
	Auto     Mode = "auto" // everything is allowed
	AskFirst Mode = "ask"  // what writes or runs is asked about
	Plan     Mode = "plan" // what writes or runs is denied, but for commands that are known to read
)

// Policy is a mode with rules. The zero Policy allows everything. It does not change while it is used.
type Policy struct {
	Mode  Mode
	Rules []Rule
}

// Call is a call of a tool.
type Call struct {
	// Tool is the name of the tool. That of a server's tool is mcp__SERVER__TOOL.
	Tool string
	// Command is what it has the shell run, if it does.
	Command string
	// Paths are the files that it is about, relative to where it works.
	Paths []string
	// Writes says that it may change something, and is no tool by which members take part in the team.
	Writes bool
}

// Decision is what becomes of a call, and why.
type Decision struct {
	Action Action
	// Rule is the rule that decided, or the mode.
	Rule string
	// IsDefault says that no rule is for the call, and nothing was granted for it: the mode auto allows it.
	IsDefault bool
	// Subject is what it decided about: a command, a file or a tool.
	Subject string
	// Why says more where it is not plain, such as that a command cannot be known.
	Why string
	// Grant has the rules by which the same would be allowed. It is set where Action is Ask.
	Grant []string
}

// IsIdle reports whether the policy allows every call, so that no call needs to be looked at. That is what a team has
// whose user has said nothing about permissions: then tools are not even wrapped.
func (p Policy) IsIdle() bool {
	return (p.Mode == Auto || p.Mode == "") &&
		!slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Action != Allow })
}

// Line says in one line what a model must know of the policy; "" if it allows everything.
func (p Policy) Line() string {
	if p.IsIdle() {
		return ""
	}
	return "mode " + string(cmp.Or(p.Mode, Auto)) + "; rules of the user refuse some calls of tools, or ask the user " +
		"about them first. The result of such a call says so"
}

// Decide decides about a call. granted are what the user has allowed when it was asked about.
func (p Policy) Decide(c Call, granted []string) Decision {
	if p.IsIdle() {
		return Decision{IsDefault: true}
	}
	d := decision{policy: p, call: c, granted: granted}
	if c.Command != "" {
		d.command()
	} else {
		d.other()
	}
	return d.worst
}

// decision collects what the parts of a call come to.
type decision struct {
	policy  Policy
	call    Call
	granted []string
	worst   Decision
}

// note keeps the stronger of two decisions, and what must be granted. What must be granted is collected from all parts
// that are asked about: one answer is for the whole call.
func (d *decision) note(n Decision) {
	grant := append(d.worst.Grant, n.Grant...)
	if n.Action > d.worst.Action || d.worst.IsDefault || d.worst.Rule == "" {
		d.worst = n
	}
	d.worst.Grant = nil
	if d.worst.Action == Ask {
		slices.Sort(grant)
		d.worst.Grant = slices.Compact(grant)
	}
}

// ask notes that something is asked about, unless the user has granted it.
func (d *decision) ask(rule, subject, why, grant string) {
	if slices.Contains(d.granted, grant) {
		d.note(Decision{Action: Allow, Rule: "what you allowed before", Subject: subject})
		return
	}
	d.note(Decision{Action: Ask, Rule: rule, Subject: subject, Why: why, Grant: []string{grant}})
}

// other decides about a call that runs no command.
func (d *decision) other() {
	subjects := d.call.Paths
	if len(subjects) == 0 {
		subjects = []string{""}
	}
	for _, path := range subjects {
		subject := cmp.Or(path, d.call.Tool)
		grant := d.call.Tool
		if path != "" {
			grant += "(" + path + ")"
		}
		match := func(r Rule) truth { return r.matchesPath(d.call.Tool, path) }
		d.decide(subject, "", grant, d.call.Writes, match, match)
	}
}

// decide decides about one subject. A rule that denies ends it at once. A match of such a rule that is only possible
// asks, because to deny what is most likely something else would stop ordinary work. The mode plan comes before rules
// that ask, and those come before rules that allow, so that no rule makes anything weaker than it is without it.
//
// The subject is what people read. why says why it cannot be known, and grant is the rule that an approval adds.
// lenient says how far a rule to deny or to ask is for it, and strict how far one that allows it is. byMode says that
// the mode is asked where no rule is for it.
func (d *decision) decide(subject, why, grant string, byMode bool, lenient, strict func(Rule) truth) {
	var asks, allows *Rule
	maybe := false
	for i, r := range d.policy.Rules {
		switch r.Action {
		case Deny:
			switch lenient(r) {
			case yes:
				d.note(Decision{Action: Deny, Rule: r.String(), Subject: subject})
				return
			case perhaps:
				asks, maybe = &d.policy.Rules[i], true
			}
		case Ask:
			if is := lenient(r); is != no && asks == nil {
				asks, maybe = &d.policy.Rules[i], is == perhaps
			}
		case Allow:
			if allows == nil && strict(r) == yes {
				allows = &d.policy.Rules[i]
			}
		}
	}
	if maybe && why == "" {
		why = "it may be, or start, what the rule is about"
	}
	mode := d.policy.Mode
	switch {
	case byMode && mode == Plan: // a rule that asks, perhaps of a repository, makes nothing weaker
		d.note(Decision{Action: Deny, Rule: "mode plan", Subject: subject, Why: cmp.Or(why, "it does not only read")})
	case asks != nil:
		d.ask(asks.String(), subject, why, grant)
	case !byMode || mode == Auto || mode == "":
		d.note(Decision{Action: Allow, Rule: "mode auto", IsDefault: true, Subject: subject})
	case allows != nil:
		d.note(Decision{Action: Allow, Rule: allows.String(), Subject: subject})
	default:
		d.ask("mode ask", subject, why, grant)
	}
}

// command decides about a script of the shell. Each of its commands is decided about by itself, and the strongest
// decision holds. A command that does nothing but run a script, as bash -c does, is transparent to the mode and to
// rules that allow, and not to rules that deny or ask, which may be for it.
func (d *decision) command() {
	tool := d.call.Tool
	d.decideTool()
	s := shellcommands.Parse(d.call.Command)
	whole := tool + "(= " + d.call.Command + ")"
	if s.Unknown != "" {
		d.decide(firstLine(d.call.Command), s.Unknown, whole, true,
			func(r Rule) truth { return r.mayMatchCommand(tool) }, never)
	}
	doubt, missing, isNamed := cmp.Or(s.Unknown, s.Changed), map[string]need{}, map[string]bool{}
	for _, r := range d.policy.Rules {
		missing[r.Text], isNamed[r.Text] = r.missingIn(s.Texts), r.isNamedIn(s.Texts)
	}
	for _, c := range s.Commands {
		reads := d.policy.Mode == Plan && !c.Possible && s.Changed == "" && isReading(c)
		grant := tool + "(" + quote(c.Words) + ")"
		if c.Possible || hasHole(c) || doubt != "" { // a grant for it would be for more than it
			grant = whole
		}
		d.decide(shown(c.Words), "", grant, !reads && !c.Starts && !c.Possible,
			func(r Rule) truth { return r.concerns(tool, c, missing[r.Text]) },
			func(r Rule) truth {
				if doubt != "" {
					return no
				}
				return r.allows(tool, c)
			})
		d.decide(shown(c.Words), "the command may read that file", whole, false,
			func(r Rule) truth { return r.mayBeReadBy(c) }, never)
		if !isReading(c) {
			d.decide(shown(c.Words), "the command may write that file", whole, false,
				func(r Rule) truth { return r.mayBeWritten(c) }, never)
		}
	}
	moves := slices.ContainsFunc(s.Commands, func(c shellcommands.Command) bool {
		return slices.Contains([]string{"cd", "pushd", "popd"}, c.Words[0].Text)
	})
	for _, w := range s.Writes {
		if !slices.Contains(streams, w.Text) {
			d.decide("a redirection to "+w.String(), "", whole, true,
				func(r Rule) truth { return r.matchesTarget(w, moves, isNamed[r.Text]) }, never)
		}
	}
}

// decideTool notes what rules for the tool as a whole say. The mode is asked about the commands.
func (d *decision) decideTool() {
	match := func(r Rule) truth {
		if r.isFor(d.call.Tool) && r.isWhole() {
			return yes
		}
		return no
	}
	d.decide(firstLine(d.call.Command), "", d.call.Tool+"(= "+d.call.Command+")", false, match, match)
}

// streams are devices that keep nothing of what is written to them.
var streams = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}

// never is for no rule.
func never(Rule) truth { return no }

// shown returns words as people read them.
func shown(words []shellcommands.Word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.String()
	}
	return firstLine(strings.Join(parts, " "))
}

// firstLine returns a text as one line that is not too long.
func firstLine(s string) string {
	return text.CutBytes(text.OneLine(s), 120)
}
