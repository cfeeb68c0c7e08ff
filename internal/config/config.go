// Package config reads the settings. Each setting carries the place that its value comes from. A flag overrides the
// environment (MUSTER_*), which overrides muster.yaml in the repository, which overrides the user's own config.yaml,
// which overrides the default.
//
// Table lists the settings; every other place, the flags and the documentation included, takes them from there. Load
// returns the typed Settings and the list of Values with their Source. ParseModel and Choose read the names of models.
//
// The package keeps these invariants:
//
//   - A repository is not trusted. Of its own file only counts what does no harm and what the user has trusted with
//     just this value; a server it may never choose, because the user's key and code would go to it.
//   - No Value and no error holds a secret. Keys come from the environment, or from files that only the user's own file
//     names.
//   - A mistake is reported with its place (a file's line and column, a variable, a flag), and nothing is used then.
//
// The files: config.go (Load and the order of the sources), table.go (the settings), kind.go (how the texts of settings
// are read), file.go (the YAML files), section.go (settings that are structures), repository.go (what of a repository's
// own file counts), models.go (the names of models) and endpoints.go (the user's own model servers). What a setting
// does is not decided here.
package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
)

// Value is a setting with the place that its value comes from. It never holds a secret.
type Value struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      Source `json:"source"`
	Description string `json:"description"`
	// Withheld is what the repository's own file says and what does not count; nil if there is nothing of the kind.
	Withheld *Withheld `json:"withheld,omitempty"`
	// Removed is the version that removed the setting, which is set all the same; "": muster has it.
	Removed string `json:"removed,omitempty"`
}

// Withheld is the value of a setting in the repository's own file that does not count.
type Withheld struct {
	Value string `json:"value"`
	// NeedsTrust says that it counts when the user trusts it. A repository may not choose the others at all.
	NeedsTrust bool `json:"needs_trust"`
	// StopsRuns says that no run begins without it.
	StopsRuns bool `json:"stops_runs"`
	// IsOverridden says that it would not count in any case: a flag or a variable is stronger than the file.
	IsOverridden bool `json:"overridden"`
}

// Source is where a setting's value comes from: "default", "where you are", "user config PATH", "muster.yaml",
// "env NAME" or "flag --NAME". The values are part of the output of muster config --json.
type Source string

// The sources that have no name of their own in them.
const (
	FromDefault    Source = "default"
	FromStart      Source = "where you are" // the directory in which muster was started
	FromRepository Source = File
)

func fromEnv(name string) Source { return Source("env " + name) }

func userSource(o Options) Source { return Source("user config " + UserFile(o.UserDir)) }

func fromFlag(name string) Source { return Source("flag --" + name) }

// Options say where to look for settings.
type Options struct {
	// Root is the repository's root; "" when there is none.
	Root string
	// Start is the directory in the repository in which the user is, relative to the top and with slashes; "" is the
	// top.
	Start string
	// Environ is the environment as os.Environ gives it.
	Environ []string
	// Flags are the flags that were given, by their names without dashes in front.
	Flags map[string]string
	// UserDir holds muster/config.yaml; "" is os.UserConfigDir.
	UserDir string
	// Trusts reports whether the user trusts the value of a setting in the repository's file. Nil trusts none.
	Trusts func(name, value string) (bool, error)
}

// File is the name of the settings file in a repository.
const File = "muster.yaml"

// UserFile returns the path of the user's own file. userDir is the directory of Options. It returns "" when the system
// has no directory for settings.
func UserFile(userDir string) string {
	if userDir == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		userDir = dir
	}
	return filepath.Join(userDir, "muster", "config.yaml")
}

// Load gathers the settings. It returns them typed, and as a list in which each value carries its source. Without a
// model, it takes the one whose key is set; with no key either, Model stays empty, and Choose says what to do. Removed
// settings are in the list if they are set. Errors are Invalid and name the place of the mistake.
func Load(o Options) (Settings, []Value, error) {
	l := newLoader(o)
	if err := l.load(o); err != nil {
		return Settings{}, nil, err
	}
	var values, removed []Value
	for _, s := range l.table {
		v := s.value(l.sources[s.Name])
		if v.Removed != "" {
			if v.Source != FromDefault {
				removed = append(removed, v)
			}
			continue
		}
		if v.Withheld = l.withheld[s.Name]; v.Withheld != nil {
			v.Withheld.IsOverridden = l.strength(s.Name) > 0 ||
				(s.Name == "check" || s.Name == "checks") && max(l.strength("check"), l.strength("checks")) > 0
		}
		values = append(values, v)
	}
	l.Review = reviewer(l.Review)
	return l.Settings, slices.Concat(values, l.Endpoints.values(userSource(o)), removed), nil
}

// loader holds what was gathered so far.
type loader struct {
	Settings
	environ map[string]string // the environment
	table   []Setting         // of these Settings
	sources map[string]Source // of the values, by the names of the settings

	// withheld are the values of the repository's file that do not count, by the names of the settings.
	withheld map[string]*Withheld
	// errRefused says what the repository set and may not set. It matters only if no later source overrides it.
	errRefused error
}

func newLoader(o Options) *loader {
	l := &loader{environ: environment(o.Environ), sources: map[string]Source{}, withheld: map[string]*Withheld{}}
	l.Endpoints = Endpoints{byName: map[string]endpoint{}, models: map[string]modelSetting{}}
	l.table, l.Roles = l.Settings.table(), map[string]*Role{}
	return l
}

// load applies the sources in the order in which they override each other, so the last value that was set holds.
func (l *loader) load(o Options) error {
	for _, s := range l.table {
		_ = l.set(s, s.Default, FromDefault) // a default is right
	}
	if o.Start != "" && o.Root != "" {
		l.Directory, l.sources["directory"] = o.Start, FromStart
	}
	// Files come after the defaults and before the environment, because a variable is meant for one shell or one
	// command.
	if err := l.files(o); err != nil {
		return err
	}
	for _, s := range l.table {
		// An empty variable counts as not set, because a shell cannot easily unset one for a single command.
		if v := l.environ[s.Env()]; v != "" {
			if err := l.set(s, v, fromEnv(s.Env())); err != nil {
				return muster.Errorf(muster.Invalid, "%s: %v", s.Env(), err)
			}
		}
	}
	// Each flag sets another setting, so their order does not matter.
	for name, v := range o.Flags {
		s, ok := l.find(func(s Setting) bool { return s.Flag() == name })
		if !ok {
			return muster.Errorf(muster.Invalid, "no setting belongs to the flag --%s", name)
		}
		if err := l.set(s, v, fromFlag(name)); err != nil {
			return muster.Errorf(muster.Invalid, "--%s: %v", name, err)
		}
	}
	// What the repository may not set is refused only if it would hold. A user who names another model can work in it.
	if l.sources["model"] == FromRepository && l.errRefused != nil {
		return l.errRefused
	}
	l.chooseChecks()
	l.enterDirectory()
	if l.Model == "" {
		l.Model, l.sources["model"] = modelByKey(l.environ)
	}
	if l.sources["model"] != FromRepository {
		l.UserModel = l.Model
	}
	return nil
}

// files reads the user's file and then the repository's, of which not everything counts.
func (l *loader) files(o Options) error {
	user := UserFile(o.UserDir)
	f := fileLoader{loader: l, name: user, source: userSource(o)}
	if err := f.load(user); err != nil || o.Root == "" {
		return err
	}
	if o.Trusts == nil {
		o.Trusts = func(string, string) (bool, error) { return false, nil }
	}
	f = fileLoader{loader: l, name: File, source: FromRepository, userFile: user, trusts: o.Trusts}
	return f.load(filepath.Join(o.Root, File))
}

// set applies a value. A later source overrides an earlier one, and the value changes together with its source.
func (l *loader) set(s Setting, text string, source Source) error {
	err := s.set(text)
	if err == nil {
		l.sources[s.Name] = source
	}
	return err
}

// find returns the first setting for which is returns true.
func (l *loader) find(is func(Setting) bool) (Setting, bool) {
	if i := slices.IndexFunc(l.table, is); i >= 0 {
		return l.table[i], true
	}
	return Setting{}, false
}

// environment turns a list of NAME=value into a map. Of a name that comes twice, the last value holds, as for a process
// that is started with the list.
func environment(list []string) map[string]string {
	m := map[string]string{}
	for _, e := range list {
		if k, v, ok := strings.Cut(e, "="); ok {
			m[k] = v
		}
	}
	return m
}
