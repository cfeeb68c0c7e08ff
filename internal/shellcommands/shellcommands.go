// Package shellcommands names the simple commands of a script of bash, without running it.
//
// Parse walks over the syntax tree: it enters lists, pipelines, loops, conditions, groups, functions and substitutions.
// A text that a shell, eval or trap runs is parsed again. A part of a word that is known only when the script runs is a
// hole in it (word.go).
//
// These are not looked at: scripts in files, code of other languages, what other programs start, names that ln, hash or
// PATH give to other programs, and texts that bash expands a second time, as in arithmetic or in PS4. What a command
// means, and whether it may run, does not belong here.
package shellcommands

import (
	"errors"
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
	// Texts are the names, options and the like that other commands may get: those of the script without its
	// here-documents and the options of its programs.
	Texts []string
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
	// Starts says that the command does nothing but run a script, whose commands are listed too.
	Starts bool
	// ReadsScript says that it may start a shell that reads a script from its input.
	ReadsScript bool
}

// The limits of what is looked into. A deeper or longer script is not known.
const (
	maxText  = 64 << 10 // the parser needs up to 5 KB of its stack for each parenthesis
	maxDepth = 6        // of scripts in scripts
)

// Parse names the commands of a script. It never fails: a text that is no script is an unknown one.
func Parse(text string) Script {
	p := &parser{passOn: map[string]bool{"echo": true, "printf": true, "set": true}}
	for _, shell := range shells {
		p.passOn[shell] = true
	}
	p.script(text, 0, false)
	for i := range p.out.Commands {
		c := &p.out.Commands[i]
		c.ReadsScript = c.ReadsScript && p.hasInput
	}
	return p.out
}

// parser collects what a script starts.
type parser struct {
	out      Script
	hasInput bool            // some command has an input: a pipe, a here-document or a process substitution
	passOn   map[string]bool // commands whose arguments others get: functions, shells, and what prints
}

// unknown notes why the script cannot be known. The first reason stays.
func (p *parser) unknown(why string) {
	if p.out.Unknown == "" {
		p.out.Unknown = why
	}
}

// script adds the commands of a script at a depth. A hole in the text may have commands of its own.
func (p *parser) script(text string, depth int, isPossible bool) {
	file, why := parse(text)
	if depth > maxDepth {
		why = "scripts are nested too deeply"
	}
	if why != "" {
		p.unknown(why)
		return
	}
	if depth > 0 && strings.Contains(text, Hole) {
		words := []Word{{Text: "eval"}, {Text: Hole, Splits: true}}
		p.out.Commands = append(p.out.Commands, Command{Words: words, Possible: isPossible})
	}
	w := &walker{parser: p, depth: depth, isPossible: isPossible, skipped: map[*syntax.Word]bool{}}
	for n := range syntax.Preorder(file) {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			p.passOn[f.Name.Value] = true
		}
	}
	for n := range syntax.Preorder(file) {
		w.visit(n)
	}
}

// parse parses a text, or says why it cannot. Where a line ends with a carriage return, bash and the parser disagree.
func parse(text string) (file *syntax.File, why string) {
	switch {
	case len(text) > maxText:
		return nil, "it is very long"
	case strings.ContainsAny(text, "\x00\r"):
		return nil, "it has a NUL byte or a carriage return"
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	file, err := parser.Parse(strings.NewReader(text), "")
	var wrong syntax.ParseError
	if errors.As(err, &wrong) && strings.HasPrefix(text[min(len(text), int(wrong.Pos.Offset())):], "<<") {
		// To bash, a here-document without its end goes to the end of the script.
		if end := strings.Fields(strings.TrimLeft(text[wrong.Pos.Offset():], "<-")); len(end) > 0 {
			file, err = parser.Parse(strings.NewReader(text+"\n"+strings.Trim(end[0], `'"\`)+"\n"), "")
		}
	}
	if err != nil {
		return nil, "it cannot be parsed"
	}
	return file, ""
}

// harmless are variables of the environment that change no program into another one.
var harmless = strings.Fields("CGO_ENABLED GOOS GOARCH GOMAXPROCS GORACE NODE_ENV CI LANG LC_ALL LC_CTYPE TZ " +
	"NO_COLOR FORCE_COLOR CLICOLOR DEBUG VERBOSE RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE " +
	"PYTHONHASHSEED GIT_TERMINAL_PROMPT TERM COLUMNS LINES")

// setVariable notes that the script sets a variable for the programs that it starts. One in capitals may be of the
// environment, as PATH is.
func (p *parser) setVariable(name string, isExported bool) {
	isExported = isExported || name == strings.ToUpper(name) && strings.Trim(name, "_0123456789") != ""
	if p.out.Changed == "" && isExported && !slices.Contains(harmless, name) {
		p.out.Changed = "it sets " + name
	}
}
