package shellcommands

import (
	"slices"
	"strings"
)

// launchers start other commands in ways that are not followed: any part of their arguments may be one. What is found
// so is only possible, because it may as well be a file or a text: a rule that denies it then asks.
var launchers = strings.Fields("parallel watch script strace ltrace gdb valgrind perf flock tmux screen systemd-run " +
	"unshare nsenter chroot entr expect start-stop-daemon xvfb-run dbus-run-session dbus-launch faketime fakeroot " +
	"proot setarch linux32 linux64 setpriv capsh runuser su ssh mosh autossh rsync scp sftp tar ssh-agent gosu tini " +
	"dumb-init chpst fd fdfind npx bunx uvx uv pipx poetry pipenv bundle npm pnpm yarn bun mise asdf direnv nix " +
	"nix-shell docker podman kubectl hyperfine vagrant lxc schroot firejail bwrap prlimit cpulimit cgexec numactl " +
	"rlwrap unbuffer stty ld.so make gmake just socat nc ncat netcat sshpass proxychains proxychains4 torsocks " +
	"tsocks watchexec nodemon pkexec run0 sg newgrp zip cpio dpkg apt apt-get man less more crontab logrotate " +
	"run-parts env-update distrobox toolbox at batch split sort cmake ip chronic ifne pee nu elvish xonsh lftp")

// readers are launchers that start a shell where their arguments have no command. The shell reads what a pipe brings,
// and which of their arguments are a command is not known.
var readers = strings.Fields("at batch crontab su newgrp sg script unshare nsenter chroot tmux screen toolbox " +
	"distrobox")

// interpreters run code of another language, which may start commands. Their code is not parsed. It is kept, so that a
// rule can look for its words in it.
var interpreters = strings.Fields("python pypy perl ruby node nodejs deno php lua luajit awk " +
	"gawk mawk nawk sed ed ex vi vim nvim emacs m4 tclsh wish expect osascript pwsh powershell sqlite psql mysql " +
	"gdb R Rscript julia ghc runghc scala groovy jshell erl elixir irb dc make gmake ninja jq go cargo view vimdiff " +
	"gnuplot octave lftp guile racket sbcl ocaml swift hg svn tex latex pdflatex xelatex lualatex gcc g++ cc clang")

// languages are the interpreters that read their code from their input where their arguments name none. The others read
// data there, as awk and jq do.
var languages = strings.Fields("python pypy perl ruby node nodejs deno php lua luajit R Rscript julia tclsh expect " +
	"osascript pwsh powershell guile racket irb jshell dc m4")

// launch adds what a launcher may start.
func (u *unwrapper) launch(name string, args []Word) {
	if name == "parallel" {
		args = withArguments(args)
	}
	u.anyPart(args)
	u.readsInput = u.readsInput || slices.Contains(readers, name) && !u.input.isKnown
}

// interpret keeps the code that an interpreter gets in its arguments and its input. It is known without the version
// behind its name.
func (u *unwrapper) interpret(name string, args []Word) {
	u.code = u.input.text
	for _, w := range args {
		u.code += "\n" + w.String()
	}
	u.readsInput = u.readsInput || slices.Contains(languages, name) && !u.input.isKnown && readsInput(args)
}

// anyPart adds each part of some arguments as a possible command: those from any word on, and texts with blanks. What
// stands behind an = is a part too, as in --to-command=COMMAND.
func (u *unwrapper) anyPart(args []Word) {
	// Each argument may begin a command, and each such command may be a launcher again. To leave out those behind the
	// first ones would hide a command behind many files.
	const most = 100
	if len(args) > most {
		u.unknown("a program in it that starts others has very many arguments")
		return
	}
	for i, w := range args {
		if w.Splits {
			u.out.Commands = append(u.out.Commands, Command{Words: args[i:], Possible: true})
			continue
		}
		text := w.Prefix
		if strings.HasPrefix(text, "-") {
			for i := 2; i < min(len(text), 5) && strings.Contains(text, " "); i++ { // the value of a short option
				u.parser.script(text[i:], u.depth+1, true)
			}
			if _, text, _ = strings.Cut(text, "="); text == "" {
				continue
			}
		}
		if strings.ContainsAny(text, " \t\n;&|$`(") {
			u.parser.script(text, u.depth+1, true)
			_, rest, _ := strings.Cut(text, "=")
			u.parser.script(rest, u.depth+1, true)
		} else if u.depth < maxDepth {
			u.next(append([]Word{{text, w.Suffix, w.Hole, w.Globs, w.Splits}}, args[i+1:]...), true)
			if _, rest, ok := strings.Cut(text, "="); ok {
				u.next(append([]Word{Known(rest)}, args[i+1:]...), true)
			}
		}
	}
	if u.input.isKnown {
		u.parser.script(u.input.text, u.depth+1, true)
	}
}

// withArguments returns the words of a command of parallel, in which {} and its like stand for what it is started with.
func withArguments(args []Word) []Word {
	args = append(slices.Clone(args), anything)
	for i, w := range args {
		if at := strings.IndexByte(w.Prefix, '{'); at >= 0 && strings.ContainsAny(w.Prefix, " \t") {
			args[i] = Known(w.Prefix[:at] + "$x") // a script
		} else if at >= 0 {
			args[i] = Word{Prefix: w.Prefix[:at], Hole: true}
		}
	}
	return args
}

// readsInput reports whether an interpreter with such arguments reads its code from its input: all of them are options,
// or one names the input.
func readsInput(args []Word) bool {
	if len(args) == 1 && slices.Contains([]string{"-h", "-v", "-V", "--help", "--version"}, args[0].Prefix) {
		return false
	}
	return slices.ContainsFunc(args, isDevice) ||
		!slices.ContainsFunc(args, func(w Word) bool { return !w.Splits && !strings.HasPrefix(w.Prefix, "-") })
}

// rename notes that a program gets another name, by which no rule would know it. The command is possible with any
// arguments, so that a rule for it asks. Through a link to a device a shell reads what nobody has seen.
func (u *unwrapper) rename(args []Word) {
	for i, w := range args {
		if w.IsKnown() && isDevice(w) {
			u.unknown("it gives a device another name")
		}
		w.Prefix = w.Prefix[strings.LastIndexByte(w.Prefix, '/')+1:]
		w.Suffix = w.Suffix[strings.LastIndexByte(w.Suffix, '/')+1:]
		if w.Splits {
			w.Suffix, w.Splits = "", false
		}
		if w.Prefix+w.Suffix != "" {
			u.out.Commands = append(u.out.Commands, Command{Words: []Word{w, anything}, Possible: true})
		} else if base, ok := args[len(args)-1].Base(); ok && i < len(args)-1 {
			u.renamed = append(u.renamed, base) // the file is known only when it runs
		}
	}
}

// search adds the programs that rg starts for each file.
func (u *unwrapper) search(args []Word) {
	for i, w := range args {
		option, value, hasValue := strings.Cut(w.Prefix, "=")
		if option != "--pre" && option != "--hostname-bin" {
			continue
		}
		if program := args[min(i+1, len(args)):]; !hasValue && len(program) > 0 {
			value = program[0].Prefix
		}
		u.next([]Word{Known(value), anything}, true)
	}
}

// remote notes that ssh without a command reads a script from its input. Options may stand before and behind the host.
func (u *unwrapper) remote(args []Word) {
	options, hasHost := wrapper{short: "BbcDEeFIiJLlmOoPpQRSWw"}, false
	for len(args) > 0 {
		switch isOption := len(args[0].Prefix) > 1 && args[0].Prefix[0] == '-'; {
		case isOption:
			_, args = optionValue(options, args[0].Prefix, args[1:])
			continue
		case hasHost:
			return
		}
		hasHost, args = true, args[1:]
	}
	u.readsInput = u.readsInput || !u.input.isKnown
}
