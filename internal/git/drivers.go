package git

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// setting is one value of git's config that a call is given. It overrides all files.
type setting struct{ key, value string }

// Setting is one for a single call: see Call.Settings.
type Setting = setting

// Set returns a setting.
func Set(key, value string) Setting { return setting{key, value} }

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
	// A file counts as unchanged only if all that the file system tells of it is as it was.
	{"core.ignoreStat", "false"},
	{"core.trustctime", "true"},
	{"core.checkStat", "default"},
	{"core.untrackedCache", "false"},
	{"core.splitIndex", "false"}, // a shared index lies in the git directory of another worktree
	{"i18n.commitEncoding", "utf-8"},
	{"i18n.logOutputEncoding", "utf-8"},
	{"color.ui", "false"},
	{"diff.orderFile", os.DevNull},          // its path may hold in the user's checkout alone
	{"advice.graftFileDeprecated", "false"}, // there is none: GIT_GRAFT_FILE names nothing
}

// textMerge replaces each merge driver that may not run: it merges as git merges text and always reports a conflict, so
// that no file lands that its driver has not seen. An empty driver would silently take "ours".
const textMerge = "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B; exit 1"

// driverless are the commands that never convert file contents, merge, or show differences, so that no driver runs.
// diff-tree compares trees, and only a patch would show contents: nobody asks it for one. write-tree is none of them:
// it runs clean filters on files whose times do not tell whether they are as staged.
var driverless = []string{"version", "rev-parse", "rev-list", "config", "var", "update-ref", "symbolic-ref",
	"for-each-ref", "show-ref", "merge-base", "cat-file", "ls-tree", "commit-tree", "mktree", "diff-tree",
	"pack-objects", "merge-file", "read-tree", "check-ref-format", "check-ignore", "check-attr"}

// runsDrivers reports whether a command may run a driver that a config names.
func runsDrivers(args []string) bool {
	switch args[0] {
	case "worktree":
		return !slices.Contains(args, "list") && !slices.Contains(args, "--no-checkout")
	case "diff-index", "update-index":
		return !slices.Contains(args, "--cached") && !slices.Contains(args, "-z")
	case "ls-files":
		return slices.Contains(args, "--modified") // it reads the files of which the times do not tell
	}
	return !slices.Contains(driverless, args[0])
}

// driver is a filter or a merge driver: the values of its section of the config by their last part, such as "clean".
type driver map[string]string

// drivers are the filters and merge drivers of the config, by section: "filter.lfs". They are read when the repository
// is opened, because an agent can write the repository's config at any time.
type drivers struct {
	armed map[string]driver // those that run: the user's own, and those that the user trusts
	local map[string]driver // those that the repository's own config names or changes: they do not run
}

// scoped is one value of the config with the kind of file that it is from: "system", "global", "local", "worktree".
type scoped struct{ scope, key, value string }

// isUsers reports whether the value is from one of the user's own files, which no clone brings and no team writes.
func (s scoped) isUsers() bool { return s.scope == "system" || s.scope == "global" }

// section returns the section of a driver's key, and the key's last part. ok is false for every other key, such as
// merge.conflictStyle.
func (s scoped) section() (section, variable string, ok bool) {
	first, last := strings.IndexByte(s.key, '.'), strings.LastIndexByte(s.key, '.')
	isDriver := strings.HasPrefix(s.key, "filter.") || strings.HasPrefix(s.key, "merge.")
	if !isDriver || first == last {
		return "", "", false
	}
	return s.key[:last], s.key[last+1:], true
}

// newDrivers sorts the drivers of a config. One of the user's that the repository's config changes is a driver of the
// repository: neither the user nor the project would get what they expect if it ran half.
func newDrivers(values []scoped) drivers {
	users, all := map[string]driver{}, map[string]driver{}
	add := func(to map[string]driver, section, variable, value string) {
		if to[section] == nil {
			to[section] = driver{}
		}
		to[section][variable] = value // the last one counts, as it does for git
	}
	for _, v := range values {
		section, variable, ok := v.section()
		if !ok {
			continue
		}
		add(all, section, variable, v.value)
		if v.isUsers() {
			add(users, section, variable, v.value)
		}
	}
	d := drivers{armed: map[string]driver{}, local: map[string]driver{}}
	for section, def := range all {
		if maps.Equal(users[section], def) {
			d.armed[section] = def
		} else {
			d.local[section] = def
		}
	}
	return d
}

// UntrustedDrivers returns the filters and merge drivers of the repository's own config, as sorted lines of the form
// "filter.NAME.clean = COMMAND". They do not run unless TrustDrivers was called.
func (r *runner) UntrustedDrivers() []string {
	var lines []string
	for section, def := range r.drivers.local {
		for variable, value := range def {
			lines = append(lines, section+"."+variable+" = "+value)
		}
	}
	slices.Sort(lines)
	return lines
}

// TrustDrivers lets the drivers that UntrustedDrivers returns run, as they were when the repository was opened. The
// user has seen and trusted them. It must be called before the repository is used.
func (r *runner) TrustDrivers() {
	maps.Copy(r.drivers.armed, r.drivers.local)
	clear(r.drivers.local)
}

// FilterState says what becomes of a file that has an attribute filter=NAME.
type FilterState int

// The states of a filter.
const (
	FilterRuns      FilterState = iota // it is the user's own, or trusted
	FilterUntrusted                    // the repository's own config names or changes it
	FilterMissing                      // no config names it
)

// Filter returns the state of the filter of that name.
func (r *runner) Filter(name string) FilterState {
	section := "filter." + name
	if r.drivers.armed[section] != nil {
		return FilterRuns
	}
	if r.drivers.local[section] != nil {
		return FilterUntrusted
	}
	return FilterMissing
}

// placeSettings returns the settings of each git in a place: which changes it sees, and which drivers run. isStaging
// says that a file must have passed its filter.
func (r *runner) placeSettings(isStaging bool) (settings []setting) {
	for _, s := range r.pinned {
		if s.key != excludesFile && s.key != attributesFile { // the place has copies of these
			settings = append(settings, s)
		}
	}
	if len(r.drivers.armed) > 0 {
		settings = append(settings, r.forPlaces.secret...)
	}
	for section, d := range r.drivers.armed {
		if strings.HasPrefix(section, "merge.") {
			settings = append(settings, setting{section + ".driver", cmp.Or(d["driver"], textMerge)})
		} else {
			settings = append(settings,
				d.filter(section, false, isStaging && (d["clean"] != "" || d["process"] != ""))...)
		}
	}
	for section := range r.drivers.local {
		if strings.HasPrefix(section, "merge.") {
			settings = append(settings, setting{section + ".driver", textMerge})
		}
	}
	return settings
}

// FilterConfig returns the filters that run as the text of a config file.
func (r *runner) FilterConfig() string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for _, section := range slices.Sorted(maps.Keys(r.drivers.armed)) {
		name, isFilter := strings.CutPrefix(section, "filter.")
		if !isFilter {
			continue
		}
		fmt.Fprintf(&b, "[filter \"%s\"]\n", quote.Replace(name))
		for variable, value := range r.drivers.armed[section] {
			fmt.Fprintf(&b, "\t%s = \"%s\"\n", variable, quote.Replace(value))
		}
	}
	return b.String()
}

// driverSettings returns the settings for a call that could run drivers: those that may run are as they were when the
// repository was opened, and each other one that git's config, as the call c sees it, names now is disarmed. The config
// is asked before every such call: an agent can add a driver at any time.
func (r *runner) driverSettings(ctx context.Context, c Call) (settings []setting, err error) {
	configured, err := r.Config(ctx, Call{Dir: c.Dir, Env: c.Env}, `^(filter|merge)\.`)
	if err != nil {
		return nil, err
	}
	sections := map[string]bool{}
	for key := range configured {
		if section, _, ok := (scoped{key: key}).section(); ok {
			sections[section] = true
		}
	}
	for section := range r.drivers.armed {
		sections[section] = true
	}
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		armed := r.drivers.armed[section]
		if strings.HasPrefix(section, "merge.") {
			settings = append(settings, setting{section + ".driver", cmp.Or(armed["driver"], textMerge)})
			continue
		}
		// A file that is staged must have passed its filter, also where the user would take a filter that fails for
		// none.
		isStaging := c.Args[0] == "add" && (armed["clean"] != "" || armed["process"] != "")
		settings = append(settings, armed.filter(section, configured[section+".process"] != "", isStaging)...)
	}
	return settings, nil
}

// filter returns the settings that make a section of the config this filter, and nothing else. Nil is the filter that
// does nothing. mustRun makes git fail where it could not run.
func (d driver) filter(section string, hasProcess, mustRun bool) []setting {
	all := []setting{{section + ".clean", d["clean"]}, {section + ".smudge", d["smudge"]},
		{section + ".required", cmp.Or(d["required"], "false")}}
	if mustRun {
		all[2].value = "true"
	}
	// A process counts before the two commands, and an empty one counts too: then none of the three runs.
	if d["process"] != "" || hasProcess || len(d) == 0 {
		all = append(all, setting{section + ".process", d["process"]})
	}
	return all
}

// plainDiff makes a command that shows differences show git's own. No setting turns off an external diff or a textconv,
// only an option does. So it is with the look into nested repositories: a .gitmodules overrides diff.ignoreSubmodules.
func plainDiff(args []string) []string {
	var opts []string
	switch args[0] {
	case "diff", "log", "show", "diff-tree", "diff-index", "diff-files", "format-patch", "whatchanged":
		opts = []string{"--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}
	case "status":
		opts = []string{"--ignore-submodules=all"}
	case "blame", "grep":
		opts = []string{"--no-textconv"}
	default:
		return args
	}
	return slices.Concat(args[:1], opts, args[1:])
}
