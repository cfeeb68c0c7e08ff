// Package shellcommands names the programs that a script of bash starts, without running it.
//
// Parse returns the simple commands of a script: those in pipelines, lists, subshells, substitutions, here-documents
// and functions, and those that other commands start, such as env, xargs, sh -c, find -exec and git with an alias.
//
// A Script is complete, or says in Unknown why it is not. This is what the package promises: each program that bash
// starts itself when it runs the script is one of the Commands, or Unknown is set. A program that is started, a script
// in a file among them, may start others: what is in it is not looked at.
//
// These are the ways in which a text becomes a command, and what is done about each:
//
//   - The syntax of the shell: every node of its tree is visited, so no place for a command is left out.
//   - A command that starts another one: a table says where it begins. Programs that are too many-sided for a table
//     have every part of their arguments looked at, and what is found is only possible.
//   - A text that is run as a script: it is parsed where it is known, and else the script is unknown. A program that
//     reads a script from a pipe makes it unknown too.
//   - An expansion in the place of a program, such as $X, *, {a,b} or $'..' with an escape: the script is unknown.
//   - A variable that bash or a program runs, such as PROMPT_COMMAND or GIT_PAGER: its text is a script.
//   - Computing with a variable: bash expands the index in a text such as a[$(x)]. Where a script computes with
//     variables and some text in it could hold such an index, the script is unknown.
//   - A name that stands for something else, by an alias, a nameref or hash -p: the script is unknown.
//   - A program that gets another name, by ln, cp or mv: it is possible with any arguments.
//   - A name that is found elsewhere, by PATH: the script is changed, and the name is all that is known.
//
// Read in this order: shellcommands.go, walk.go (the syntax tree), word.go, wrappers.go, launchers.go and git.go
// (commands that start others), builtins.go and variables.go (what makes a command another one). What a command means,
// and whether it may run, does not belong here.
package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Script is what a text starts when bash runs it. It is a value of its own, and may be kept.
type Script struct {
	// Commands are the simple commands, in no particular order.
	Commands []Command
	// Writes are the files that redirections write.
	Writes []Word
	// Unknown says why there may be other commands; "" if there are none.
	Unknown string
	// Changed says why a name may stand for another program than usual, such as a changed PATH; "" if none does.
	Changed string
}

// Command is a program with its arguments. The first word is the program.
type Command struct {
	Words []Word
	// Possible says that it is not certain that this is a command: it may be a text.
	Possible bool
	// Starts says that the command does nothing but start another one, which is a command of its own.
	Starts bool
	// Code is what the command gets to run in a language that is not looked into; "" is nothing.
	Code string
}

// The limits of what is looked into. A deeper or longer script is not known.
const (
	maxText  = 256 << 10
	maxDepth = 6    // of scripts in scripts
	maxOpen  = 2000 // brackets and substitutions: the parser of the syntax calls itself for each
	maxFound = 2000 // commands
)

// Parse names the commands of a script. It takes microseconds for a line, and has limits for everything that a text
// could make large: see maxText and its like. It never fails: a text that is no script is an unknown one.
func Parse(text string) Script {
	p := &parser{}
	p.script(text, 0, false)
	if p.unsafeText && p.arithmetic {
		p.unknown("it computes with variables, whose text may run commands")
	}
	if p.hasInput && p.readsInput {
		p.unknown("a program in it reads a script from its input")
	}
	for _, c := range p.out.Commands {
		if base, _ := c.Words[0].Base(); !c.Possible && slices.Contains(p.renamed, base) {
			p.unknown("it gives " + base + " another meaning")
		}
	}
	return p.out
}

// parser collects what a script starts.
type parser struct {
	out Script
	// unsafeText says that a variable may hold a substitution, and arithmetic that variables are computed with: bash
	// runs the substitutions in what it computes with.
	unsafeText, arithmetic bool
	// hasInput says that a pipe or a redirection makes some command's input, and readsInput that some program runs what
	// it reads there.
	hasInput, readsInput bool
	// renamed are the names of copies and links of files that are known only when it runs.
	renamed []string
}

// unknown notes why the script cannot be known. The first reason stays.
func (p *parser) unknown(why string) {
	if p.out.Unknown == "" {
		p.out.Unknown = why
	}
}

// changed notes why a name may stand for another program.
func (p *parser) changed(why string) {
	if p.out.Changed == "" {
		p.out.Changed = why
	}
}

// script adds the commands of a script at a depth. possible says that the text may be none. The depth keeps a script
// that runs itself, as eval can, from being parsed for ever.
func (p *parser) script(text string, depth int, possible bool) {
	file, why := parse(text)
	if why == "" && depth > maxDepth {
		why = "scripts are nested too deeply"
	}
	if why != "" {
		if !possible { // a text that is no script starts nothing
			p.unknown(why)
		}
		return
	}
	w := &walker{parser: p, depth: depth, possible: possible}
	w.walk(file)
}

// parse parses a text, or says why it cannot.
func parse(text string) (file *syntax.File, why string) {
	switch {
	case len(text) > maxText:
		return nil, "it is very long"
	case strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`")+strings.Count(text, "if") > maxOpen:
		return nil, "it has very many brackets"
	case strings.ContainsRune(text, 0):
		return nil, "it has a NUL byte"
	case strings.ContainsRune(text, '\r'):
		return nil, "it has a carriage return"
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, "it cannot be parsed"
	}
	return file, ""
}

// add adds a command, and what it starts. The command that starts another one stays in the list, because a rule may be
// for it: sudo is one that people deny.
func (p *parser) add(c Command, depth int, input stdin) {
	if len(p.out.Commands) >= maxFound {
		p.unknown("it has very many commands")
		return
	}
	if len(c.Words) == 0 {
		return
	}
	at := len(p.out.Commands)
	p.out.Commands = append(p.out.Commands, c)
	if first := c.Words[0]; !first.IsKnown() {
		if _, ok := first.Base(); !ok {
			if !c.Possible {
				p.unknown("the name of a program is known only when it runs")
			}
			return
		}
	}
	u := unwrapper{parser: p, command: c, depth: depth, input: input}
	u.unwrap()
	p.out.Commands[at].Starts = u.starts && !c.Possible
	p.out.Commands[at].Code = u.code
}
