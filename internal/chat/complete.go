package chat

import (
	"slices"
	"strings"

	"muster/internal/commands"
	"muster/internal/terminal"
)

// Name is a name that can be completed, and what there is to say about it.
type Name struct{ Name, Note string }

// Names is what can be completed besides the commands of a conversation. Each function returns what there is now. It
// is called while the user types, so it must not take long.
type Names struct {
	Members  func() []Name
	Requests func() []Name // those that wait for an answer
	Tasks    func() []Name
	// Custom returns the commands of the repository and of the user.
	Custom func() []commands.Command
	Files  *Files
	// Commands returns those of the command line.
	Commands func() []Command
}

// Complete returns what may stand at the cursor, which is a byte offset: commands at the start of a text, their
// arguments behind them, and files and members behind an @. Where the user asks for it, with Tab, names of members can
// stand anywhere.
func (n Names) Complete(text string, cursor int, isAsked bool) terminal.Menu {
	// Only what stands before the cursor counts: the rest of the line stays as it is.
	before := text[:min(cursor, len(text))]
	m := terminal.Menu{From: strings.LastIndexAny(before, " \n") + 1}
	word, head := before[m.From:], strings.TrimSpace(before[:m.From])
	switch {
	case m.From == 0 && strings.HasPrefix(word, "/"):
		m.Choices = n.commands(word[1:])
	case strings.HasPrefix(word, "@"):
		// A member is named more often than a file whose name begins alike.
		files, more := n.Files.find(word[1:])
		m.Choices, m.More = append(n.mentioned(word[1:]), files...), more
	case strings.HasPrefix(head, "/"):
		m.IsOptional = true // a command that needs no argument is entered as it stands
		m.Choices = startingWith(word, n.arguments(head))
	case isAsked && word != "": // an empty word would offer all members after each blank
		m.Choices = startingWith(word, n.Members())
	}
	return m
}

// arguments returns what may follow the beginning of a command.
func (n Names) arguments(head string) []Name {
	switch head {
	case "/requests":
		return []Name{{"show", "all of one"}}
	case "/mail send":
		return append(n.Members(), Name{"all", "every member"})
	case "/approve", "/reject", "/requests show":
		return n.Requests()
	case "/diff", "/undo", "/retry":
		return n.Tasks()
	case "/inbox":
		return append(n.Members(), Name{"user", "you"})
	case "/context":
		return n.Members()
	}
	return nil
}

// startingWith returns the names that go on a word.
func startingWith(word string, all []Name) (choices []terminal.Choice) {
	for _, x := range all {
		if strings.HasPrefix(x.Name, word) && x.Name != word {
			choices = append(choices, terminal.Choice{Text: x.Name + " ", Label: x.Name, Note: x.Note})
		}
	}
	return choices
}

// mentioned returns the members whose names go on what was typed behind an @.
func (n Names) mentioned(typed string) (choices []terminal.Choice) {
	for _, x := range n.Members() {
		if strings.HasPrefix(x.Name, typed) {
			choices = append(choices, terminal.Choice{Text: "@" + x.Name + " ", Label: "@" + x.Name, Note: x.Note,
				Submits: x.Name == typed})
		}
	}
	return choices
}

// commands returns the commands that have what was typed behind the slash in their names: first those whose names
// begin with it.
func (n Names) commands(typed string) []terminal.Choice {
	var begin, contain []terminal.Choice
	add := func(name, args, does string) {
		// A command that can be called without arguments is called by Enter.
		c := terminal.Choice{Text: "/" + name, Label: strings.TrimSpace("/" + name + " " + args), Note: does,
			Submits: args == "" || strings.HasPrefix(args, "[")}
		if args != "" {
			c.Text += " "
		}
		switch at := strings.Index(name, typed); {
		case at == 0:
			begin = append(begin, c)
		case at > 0:
			contain = append(contain, c)
		}
	}
	// Its own commands come first, in the order of the help, because all conversations have them.
	for _, c := range builtin {
		add(c.Name, c.Args, c.Does)
	}
	custom := n.Custom()
	for _, c := range custom {
		add(c.Name, c.Hint, customDoes(c))
	}
	for _, c := range n.Commands() {
		if !slices.ContainsFunc(custom, func(x commands.Command) bool { return x.Name == c.Name }) {
			add(c.Name, c.Args, c.Does)
		}
	}
	// What was typed whole comes first.
	slices.SortStableFunc(begin, func(a, b terminal.Choice) int {
		isWhole := func(c terminal.Choice) int {
			if strings.TrimSpace(c.Text) == "/"+typed {
				return 0
			}
			return 1
		}
		return isWhole(a) - isWhole(b)
	})
	return append(begin, contain...)
}
