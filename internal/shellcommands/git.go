package shellcommands

import (
	"slices"
	"strings"
)

// gitCommands are the commands that git has by itself: any other may be an alias.
var gitCommands = strings.Fields("add am annotate apply archive bisect blame branch bundle cat-file check-attr " +
	"check-ignore check-mailmap checkout checkout-index cherry cherry-pick clean clone column commit commit-graph " +
	"commit-tree config count-objects credential daemon describe diff diff-files diff-index diff-tree difftool " +
	"fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch " +
	"fsck gc get-tar-commit-id grep gui hash-object help hook http-backend http-fetch http-push imap-send " +
	"index-pack init init-db instaweb interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit " +
	"maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv " +
	"name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push quiltimport " +
	"range-diff read-tree rebase receive-pack reflog refs remote repack replace replay request-pull rerere reset " +
	"restore rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref " +
	"sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file " +
	"unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit " +
	"verify-pack verify-tag version whatchanged worktree write-tree lfs")

// harmlessSettings are settings of git that run nothing: beginnings of their names, or a name with its value.
var harmlessSettings = strings.Fields("user. color. advice. init.defaultbranch core.quotepath core.autocrlf " +
	"core.eol commit.gpgsign tag.gpgsign core.pager=cat core.pager= safe.directory log. diff.renames " +
	"diff.algorithm merge.conflictstyle push.default pull. rebase.autostash fetch. gc.auto core.longpaths " +
	"core.ignorecase column. http.postbuffer core.hookspath=/dev/null")

// git adds a git command without git's own options, as git push for git -C dir push, and what it starts. A command that
// git does not have may be an alias of a settings file, which is not read: it may stand for any other command of git.
// What git runs from its own directory, as git-push, is the same as git push.
func (u *unwrapper) git(name string, args []Word) {
	if sub, ok := strings.CutPrefix(name, "git-"); ok {
		u.next(append([]Word{Known("git"), Known(sub)}, args...), false)
		u.starts = true
		return
	}
	aliases, all := map[string]string{}, args
	for len(args) > 0 {
		w := args[0]
		if w.Hole && (w.Splits || w.Prefix == "" || w.Prefix[0] == '-') {
			return // every rule for git may match it
		}
		if !strings.HasPrefix(w.Prefix, "-") {
			break
		}
		args = args[1:]
		option, _, hasValue := strings.Cut(w.Prefix, "=")
		switch option {
		case "-c", "--config-env":
			if option == "-c" && len(args) > 0 {
				u.gitSetting(args[0], aliases)
			} else {
				u.unknown("it sets an option of git that may run commands")
			}
		case "--exec-path":
			if hasValue {
				u.unknown("it changes where git's programs are")
			}
			continue
		case "--git-dir", "--work-tree":
			u.changed("it names another repository of git, whose settings may run commands")
		case "-C", "--namespace", "--super-prefix", "--attr-source", "--list-cmds":
		default:
			continue
		}
		if !hasValue {
			args = args[min(1, len(args)):]
		}
	}
	if len(args) == 0 {
		return
	}
	sub := args[0].Prefix
	if len(args) < len(all) {
		u.next(append([]Word{Known("git")}, args...), false)
		u.starts = true
	}
	if text, isAlias := aliases[sub]; isAlias {
		if script, ok := strings.CutPrefix(text, "!"); ok {
			u.parser.script(script+" "+texts(args[1:]), u.depth+1, u.command.Possible)
		} else {
			u.parser.script("git "+text+" "+texts(args[1:]), u.depth+1, u.command.Possible)
		}
		return
	}
	if !slices.Contains(gitCommands, sub) {
		u.out.Commands = append(u.out.Commands, Command{Words: []Word{Known("git"), anything}, Possible: true})
	}
	u.gitStarts(sub, args[1:])
}

// gitSetting notes a setting of git -c. Many settings of git name commands, and each version has more of them. So those
// that run nothing are listed.
func (u *unwrapper) gitSetting(w Word, aliases map[string]string) {
	key, value, _ := strings.Cut(w.Prefix, "=")
	key = strings.ToLower(key)
	isHarmless := slices.ContainsFunc(harmlessSettings, func(p string) bool {
		return key+"="+value == p || strings.HasPrefix(key, p)
	})
	name, isAlias := strings.CutPrefix(key, "alias.")
	switch {
	case isAlias && w.IsKnown():
		aliases[name] = value
	case !isHarmless:
		u.parser.script(value, u.depth+1, true)
		u.unknown("it sets " + key + " of git, which may run commands")
	}
}

// gitStarts adds what a command of git starts. The commands that git runs for hooks, filters and drivers are settings
// of the repository, and are not looked at here.
func (u *unwrapper) gitStarts(sub string, args []Word) {
	text := func(i int) []Word { return args[min(i, len(args)):] }
	switch sub {
	case "submodule":
		if i := slices.IndexFunc(args, func(w Word) bool { return w.Prefix == "foreach" }); i >= 0 {
			rest := slices.DeleteFunc(slices.Clone(text(i+1)), func(w Word) bool {
				return w.Prefix == "--recursive" || w.Prefix == "--quiet" || w.Prefix == "-q"
			})
			u.script(rest)
		}
	case "bisect":
		if len(args) > 0 && args[0].Prefix == "run" {
			u.next(args[1:], false)
		}
	case "filter-branch", "difftool", "mergetool", "send-email", "instaweb":
		u.anyPart(args)
	case "for-each-repo":
		// What follows its options is a command of git, which it runs in each repository of a list. Where the options
		// end is not known, so every argument may begin it.
		for i := range args {
			u.next(append([]Word{Known("git")}, args[i:]...), true)
		}
	case "config":
		u.gitConfig(args)
	case "rebase", "fetch", "pull", "push", "clone", "ls-remote", "grep", "archive", "daemon":
		u.gitOptions(sub, args)
	}
}

// commandLetters are the short options of git's commands whose value is a command, by the command.
var commandLetters = map[string]string{"rebase": "x", "clone": "u", "grep": "O"}

// commandOptions are the long ones. They may be shortened.
var commandOptions = []string{"--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager"}

// gitOptions adds the commands in options of a command of git. Git gives them to a shell. The value may follow a letter
// in the same word, and the letter may follow others.
func (u *unwrapper) gitOptions(sub string, args []Word) {
	for i, w := range args {
		option, value, hasValue := strings.Cut(w.Prefix, "=")
		isCommand := slices.ContainsFunc(commandOptions, func(long string) bool {
			return len(option) > 3 && strings.HasPrefix(long, option)
		})
		if at := strings.IndexAny(w.Prefix, commandLetters[sub]); at > 0 && w.Prefix[0] == '-' && w.Prefix[1] != '-' {
			value = w.Prefix[at+1:]
			isCommand, hasValue = true, value != "" || w.Hole
		}
		switch {
		case strings.HasPrefix(w.Prefix, "ext::"):
			u.unknown("git runs a command to reach a repository")
		case isCommand && hasValue:
			u.script([]Word{{Prefix: value, Suffix: w.Suffix, Hole: w.Hole}})
		case isCommand && i+1 < len(args):
			u.script(args[i+1 : i+2])
		}
	}
}

// gitConfig adds the commands in arguments of git config: a setting may be a command, and an alias is one of git's.
func (u *unwrapper) gitConfig(args []Word) {
	for i, w := range args {
		u.parser.script(w.Prefix, u.depth+1, true)
		if strings.HasPrefix(w.Prefix, "alias.") && i+1 < len(args) {
			u.parser.script("git "+args[i+1].String(), u.depth+1, true)
			u.parser.script(strings.TrimPrefix(args[i+1].String(), "!"), u.depth+1, true)
		}
	}
}
