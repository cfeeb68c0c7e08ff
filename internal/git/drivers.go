package git

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
)

// Setting is one value of git's config that a call is given. It overrides all files.
type Setting struct{ Key, Value string }

// always are the settings of every call.
var always = []Setting{
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
	{"core.preferSymlinkRefs", "false"},
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
	for _, v := range valuesOf(r.drivers.local) {
		lines = append(lines, v.key+" = "+v.value)
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
	switch section := "filter." + name; {
	case r.drivers.armed[section] != nil:
		return FilterRuns
	case r.drivers.local[section] != nil:
		return FilterUntrusted
	}
	return FilterMissing
}

// settings returns the settings for a call that could run drivers: those that may run are as they were when the
// repository was opened, and all others that git's config named then are disarmed. isStaging says that a file must have
// passed its filter, also where the user would take a filter that fails for none.
func (d drivers) settings(isStaging bool) (settings []Setting) {
	add := func(section string, armed driver) {
		if strings.HasPrefix(section, "merge.") {
			settings = append(settings, Setting{section + ".driver", cmp.Or(armed["driver"], textMerge)})
			return
		}
		required := cmp.Or(armed["required"], "false")
		if isStaging && (armed["clean"] != "" || armed["process"] != "") {
			required = "true"
		}
		settings = append(settings, Setting{section + ".clean", armed["clean"]},
			Setting{section + ".smudge", armed["smudge"]}, Setting{section + ".required", required})
		// A process counts before the two commands, and an empty one counts too: then none of the three runs.
		if armed["process"] != "" || armed == nil {
			settings = append(settings, Setting{section + ".process", armed["process"]})
		}
	}
	for section, d := range d.armed {
		add(section, d)
	}
	for section := range d.local {
		add(section, nil)
	}
	return settings
}

// DriverConfig returns the filters and merge drivers that run as the text of a config file.
func (r *runner) DriverConfig() string { return configText(valuesOf(r.drivers.armed)) }

// valuesOf returns the values of drivers, in the order of their sections.
func valuesOf(all map[string]driver) (values []scoped) {
	for _, section := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[section])) {
			values = append(values, scoped{key: section + "." + name, value: all[section][name]})
		}
	}
	return values
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
