package git

import (
	"context"
	"slices"
	"strings"
)

// setting is one value of git's config that a call is given. It overrides all files.
type setting struct{ key, value string }

// always are the settings of every call.
var always = []setting{
	// No program that the repository names is started.
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"commit.gpgSign", "false"},
	{"tag.gpgSign", "false"},
	{"log.showSignature", "false"},
	{"merge.verifySignatures", "false"},
	// A merge is the same whoever runs it, and touches nothing that worktrees share.
	{"merge.autoStash", "false"}, // refs/stash is shared by all worktrees
	{"merge.conflictStyle", "merge"},
	{"rerere.enabled", "false"},
	{"submodule.recurse", "false"},
	{"diff.ignoreSubmodules", "all"}, // looking into a nested repository would obey its config
	// git does no work of its own that could hold locks after it has ended.
	{"gc.auto", "0"},
	{"core.filesRefLockTimeout", "100"}, // milliseconds; a repository may say forever
	{"core.packedRefsTimeout", "1000"},
	{"maintenance.auto", "false"},
	// Refs and packs are synced. Loose objects are not: Pack collects them in a pack before a ref names them.
	{"core.fsync", "committed,reference,-loose-object"},
	{"core.fsyncMethod", "fsync"},
	{"checkout.workers", "4"}, // a checkout waits for the disk more than for the processor
	{"checkout.thresholdForParallelism", "100"},
	// Output and messages do not depend on the user's taste.
	{"core.quotePath", "false"},
	{"core.safecrlf", "false"},
	{"i18n.commitEncoding", "utf-8"},
	{"i18n.logOutputEncoding", "utf-8"},
	{"color.ui", "false"},
}

// textMerge replaces each merge driver of the config: it is git's own merge of text, with conflict markers. An empty
// driver would silently take "ours".
const textMerge = "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B"

// driverless are the commands that never convert file contents, merge, or show differences, so that no driver runs.
// write-tree is none of them: it runs clean filters on files whose times do not tell whether they are as staged.
var driverless = []string{"version", "rev-parse", "rev-list", "config", "var", "update-ref", "symbolic-ref",
	"for-each-ref", "show-ref", "merge-base", "cat-file", "ls-tree", "ls-files", "commit-tree", "mktree",
	"pack-objects", "merge-file", "check-ref-format", "check-ignore"}

// runsDrivers reports whether a command may run a driver that a config names.
func runsDrivers(args []string) bool {
	isListing := args[0] == "worktree" && (slices.Contains(args, "list") || slices.Contains(args, "--no-checkout"))
	return !isListing && !slices.Contains(driverless, args[0])
}

// disarmDrivers returns the settings that disarm each filter and merge driver that git's config, as the call c sees it,
// names now. It is asked before every command that could run one: an agent can add one at any time.
func (r *runner) disarmDrivers(ctx context.Context, c Call) ([]setting, error) {
	configured, err := r.Config(ctx, Call{Dir: c.Dir, Env: c.Env}, `^(filter|merge)\.`)
	if err != nil {
		return nil, err
	}
	// A driver has several keys, filter.NAME.clean and so on, and is disarmed once.
	drivers := map[string]bool{}
	for key := range configured {
		if first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.'); first < last {
			drivers[key[:last]] = true
		}
	}
	var settings []setting
	for driver := range drivers {
		if strings.HasPrefix(driver, "merge.") {
			settings = append(settings, setting{driver + ".driver", textMerge})
			continue
		}
		settings = append(settings, setting{driver + ".clean", ""}, setting{driver + ".smudge", ""},
			setting{driver + ".process", ""}, setting{driver + ".required", "false"})
	}
	return settings, nil
}

// plainDiff makes a command that shows differences show git's own. No setting turns off an external diff or a textconv,
// only an option does.
func plainDiff(args []string) []string {
	var opts []string
	switch args[0] {
	case "diff", "log", "show", "diff-tree", "diff-index", "diff-files", "format-patch", "whatchanged":
		opts = []string{"--no-ext-diff", "--no-textconv"}
	case "blame", "grep":
		opts = []string{"--no-textconv"}
	default:
		return args
	}
	return slices.Concat(args[:1], opts, args[1:])
}
