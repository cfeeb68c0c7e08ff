package shellcommands

import (
	"slices"
	"strings"
)

// unwrapper looks into a command for those that it starts. It errs on one side only: a command too many is compared
// with rules that are for something else, and one too few would run without any.
type unwrapper struct {
	*parser
	command Command
	depth   int
	input   stdin
	starts  bool   // the command does nothing but start another one
	code    string // what it runs in another language
}

// wrapper says where the command begins that a program starts.
type wrapper struct {
	short string // the letters of options that have a value
	long  string // the long options that have a value in a word of its own
	skip  int    // how many words stand before the command
	env   bool   // assignments stand before it
}

// wrappers are the programs that start the command in their arguments, with what stands before it. An option that is
// missing here would hide a command behind its value, so a program is listed with all that have one, or is one of the
// launchers, whose arguments are looked at in every way.
var wrappers = map[string]wrapper{
	"env":      {short: "uCaPLU", long: "--unset --chdir --argv0", env: true},
	"nohup":    {},
	"setsid":   {},
	"nice":     {short: "n", long: "--adjustment"},
	"ionice":   {short: "cn", long: "--class --classdata"},
	"chrt":     {short: "TPD", skip: 1},
	"taskset":  {skip: 1},
	"stdbuf":   {short: "ioe", long: "--input --output --error"},
	"timeout":  {short: "ks", long: "--kill-after --signal", skip: 1},
	"gtimeout": {short: "ks", long: "--kill-after --signal", skip: 1},
	"time":     {short: "fo", long: "--format --output"},
	"sudo": {short: "ugpCDRThUrta", long: "--user --group --prompt --chdir --chroot --host --role --type",
		env: true},
	"doas":    {short: "uCa"},
	"exec":    {short: "a"},
	"command": {},
	"builtin": {},
	"jobs":    {},
	"busybox": {},
	"toybox":  {},
	"xargs": {short: "EILPadnsJRS",
		long: "--arg-file --delimiter --max-lines --max-args --max-procs --max-chars --replace"},
	"caffeinate": {short: "tw"},
}

// shells run a script in an argument, in a file or from their input.
var shells = strings.Fields("sh bash dash zsh ksh mksh lksh posh ash rbash fish yash csh tcsh osh ysh")

// unwrap looks into the command. A program is known by the last part of its path, so that /usr/bin/env is env. In a
// lane it may be another program of that name. It is treated as the usual one all the same: to find more commands than
// there are does no harm.
func (u *unwrapper) unwrap() {
	name, ok := u.command.Words[0].Base()
	if !ok {
		return
	}
	args := u.command.Words[1:]
	switch {
	case name == "eval":
		u.starts = true
		u.script(withoutDashes(args))
	case name == "trap":
		u.trap(args)
	case name == "source", name == ".":
		u.file(args)
	case name == "find", name == "gfind":
		u.find(args)
	case name == "git" || strings.HasPrefix(name, "git-"):
		u.git(name, args)
	case slices.Contains(shells, name):
		u.shell(args)
	case slices.Contains(redefining, name):
		u.redefine(name, args)
	case name == "ln", name == "cp", name == "mv", name == "install", name == "link":
		u.rename(args)
	case name == "rg":
		u.search(args)
	case name == "ssh":
		u.remote(args)
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld-musl"):
		u.anyPart(args)
	}
	if w, ok := wrappers[name]; ok {
		u.wrapped(name, w, args)
	}
	if slices.Contains(launchers, name) {
		u.launch(name, args)
	}
	if version := strings.TrimRight(name, "0123456789."); slices.Contains(interpreters, version) {
		u.interpret(version, args)
	}
}

// script adds the commands of a script in words, as eval and ssh take it.
func (u *unwrapper) script(words []Word) {
	text, ok := join(words)
	if !ok {
		u.unknown("a script in it is known only when it runs")
		return
	}
	u.parser.script(text, u.depth+1, u.command.Possible)
}

// next adds a command that the command starts.
func (u *unwrapper) next(words []Word, possible bool) {
	if u.depth > maxDepth*4 {
		u.unknown("commands are nested too deeply")
		return
	}
	u.add(Command{Words: words, Possible: possible || u.command.Possible}, u.depth+1, u.input)
}

// wrapped adds the command of a wrapper. An argument that may be an option or a command leaves open what is started, so
// that the script is unknown.
func (u *unwrapper) wrapped(name string, w wrapper, args []Word) {
	replace, mayHaveValue := "", false
	for len(args) > 0 {
		arg := args[0]
		if arg.mayBeOption() {
			if arg.Suffix == "" || arg.Splits || arg.Prefix != "" { // else it is most likely a path of a program
				u.unknown("what " + name + " starts is known only when it runs")
			}
			mayHaveValue = true
			break
		}
		if assigned, value, ok := strings.Cut(arg.Prefix, "="); w.env && ok && assigned != "" && assigned[0] != '-' {
			v := Word{Prefix: value, Suffix: arg.Suffix, Hole: arg.Hole}
			u.setVariable(assigned, v, true, u.depth)
			args = args[1:]
			continue
		}
		if len(arg.Prefix) < 2 && (name != "env" || arg.Prefix != "-") || arg.Prefix[0] != '-' {
			break
		}
		args = args[1:]
		if arg.Prefix == "--" {
			break
		}
		if u.special(name, arg, args) {
			return
		}
		value, before := "", len(args)
		value, args = optionValue(w, arg.Prefix, args)
		mayHaveValue = len(args) == before && !strings.Contains(arg.Prefix, "=")
		if strings.HasPrefix(arg.Prefix, "-I") || strings.HasPrefix(arg.Prefix, "-J") ||
			strings.HasPrefix(arg.Prefix, "--replace") {
			replace = value
		} else if strings.HasPrefix(arg.Prefix, "-i") && name == "xargs" {
			replace = "{}"
		}
	}
	args = args[min(w.skip, len(args)):]
	if len(args) == 0 {
		return
	}
	// An option that is not in the table may have a value, which then stands where the command seems to begin.
	if mayHaveValue && len(args) > 1 {
		u.next(args[1:], true)
	}
	u.starts = name != "sudo" && name != "doas"
	if name == "xargs" {
		args = withInput(args, replace)
	}
	u.next(args, false)
}

// special handles the options of wrappers that are about other things than a command. done says that there is no more.
func (u *unwrapper) special(name string, arg Word, rest []Word) (done bool) {
	isShort := !strings.HasPrefix(arg.Prefix, "--")
	switch name {
	case "command":
		return strings.ContainsAny(arg.Prefix, "vV")
	case "env":
		if isShort && strings.Contains(arg.Prefix, "S") || strings.HasPrefix(arg.Prefix, "--sp") {
			_, text, _ := strings.Cut(arg.Prefix, "S")
			if _, value, ok := strings.Cut(arg.Prefix, "="); ok {
				text = value
			}
			u.parser.script(strings.TrimSpace(text+" "+texts(rest)), u.depth+1, true)
			u.unknown("env splits a text into a command")
			return true
		}
	case "sudo", "doas":
		if isShort && strings.ContainsAny(arg.Prefix, "is") || strings.HasPrefix(arg.Prefix, "--login") ||
			strings.HasPrefix(arg.Prefix, "--shell") {
			if len(rest) > 0 {
				u.script(rest)
			} else {
				u.unknown("a shell in it reads a script from its input")
			}
			return true
		}
	}
	return false
}

// texts returns words as text, holes included.
func texts(words []Word) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.String()
	}
	return strings.Join(all, " ")
}

// optionValue returns the value of an option, and the words behind it. The value is the rest of the word, as in -n5 and
// --signal=9, or the next word.
func optionValue(w wrapper, option string, rest []Word) (string, []Word) {
	takeNext := func() (string, []Word) {
		if len(rest) == 0 {
			return "", nil
		}
		return rest[0].Prefix, rest[1:]
	}
	if strings.HasPrefix(option, "--") {
		if _, value, ok := strings.Cut(option, "="); ok {
			return value, rest
		}
		for long := range strings.FieldsSeq(w.long) { // they may be shortened
			if len(option) > 3 && strings.HasPrefix(long, option) {
				return takeNext()
			}
		}
		return "", rest
	}
	for i := 1; i < len(option); i++ {
		if strings.IndexByte(w.short, option[i]) < 0 {
			continue
		}
		if i+1 < len(option) {
			return option[i+1:], rest
		}
		return takeNext()
	}
	return "", rest
}

// withInput returns the words of a command to which xargs adds what it reads. With a text to replace, as in xargs -I{},
// what xargs reads stands in its place. Else it stands at the end.
func withInput(words []Word, replace string) []Word {
	if replace == "" {
		return append(slices.Clone(words), anything)
	}
	words = slices.Clone(words)
	for i, w := range words {
		if before, after, ok := strings.Cut(w.Prefix, replace); ok {
			words[i] = Word{Prefix: before, Suffix: after + w.Suffix, Hole: true}
			if w.Hole || strings.Contains(after, replace) {
				words[i].Suffix = ""
			}
		}
	}
	return words
}

// find adds the commands of find -exec and its like. An argument that is known only when it runs may be -exec itself,
// so that what follows is possible. A command ends at a ; or a +, which is no part of it. Its own actions, such as
// -delete, are words of find itself, which a rule can name.
func (u *unwrapper) find(args []Word) {
	for i := 0; i < len(args); i++ {
		if args[i].Splits {
			u.unknown("what find does is known only when it runs")
			return
		}
		isExec := slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].Prefix)
		if !isExec && !args[i].mayBeOption() {
			continue
		}
		words := args[i+1:]
		if end := slices.IndexFunc(words, func(w Word) bool { return w == Known(";") || w == Known("+") }); end >= 0 {
			words = words[:end]
		}
		u.next(withInput(words, "{}"), !isExec)
	}
}
