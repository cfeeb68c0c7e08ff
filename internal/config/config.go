// Package config reads the settings. Each setting carries the place that its value comes from. A flag overrides the
// environment (MUSTER_*), which overrides muster.yaml in the repository, which overrides the user's own config.yaml,
// which overrides the default.
//
// Table lists the settings; every other place, the flags and the documentation included, takes them from there. Load
// returns the typed Settings and the list of Values with their Source. ParseModel and Choose read the names of models.
//
// A repository is not trusted: it may not choose a server, because the user's key and code would go to it. No Value
// and no error holds a secret. What a setting does is not decided here.
package config

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
)

// Settings are the values that hold, typed. Table says what each of them means and its default.
type Settings struct {
	// Model is provider/model, or "" when none is set and no key decides.
	Model     string
	Teammates int
	Check     string
	Setup     string
	Land      string
	Team      string

	MaxTurns      int
	MaxTokens     int
	SubagentTurns int
	Effort        string
	// IdleTimeout is how long an idle teammate stays; 0 means forever.
	IdleTimeout       time.Duration
	BashTimeout       time.Duration
	BackgroundTimeout time.Duration
	CheckTimeout      time.Duration

	WorktreesDir string
	MergeCommits bool
}

// Value is a setting with the place that its value comes from. It never holds a secret.
type Value struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      Source `json:"source"`
	Description string `json:"description"`
}

// Source is where a setting's value comes from: "default", "user config PATH", "muster.yaml", "env NAME" or
// "flag --NAME". The values are part of the output of muster config --json.
type Source string

// The sources that have no name of their own in them.
const (
	FromDefault    Source = "default"
	FromRepository Source = File
)

// fromUserFile, fromEnv and fromFlag return the sources that name a file, a variable or a flag.
func fromUserFile(path string) Source { return Source("user config " + path) }
func fromEnv(name string) Source      { return Source("env " + name) }
func fromFlag(name string) Source     { return Source("flag --" + name) }

// Options say where to look for settings.
type Options struct {
	// Root is the repository's root; "" when there is none.
	Root string
	// Environ is the environment as os.Environ gives it.
	Environ []string
	// Flags are the flags that were given, by their names without dashes in front.
	Flags map[string]string
	// UserDir holds muster/config.yaml; "" is os.UserConfigDir.
	UserDir string
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
// model, it takes the one whose key is set; with no key either, Model stays empty, and Choose says what to do. Errors
// are Invalid and name the place of the mistake.
func Load(o Options) (Settings, []Value, error) {
	// The sources are applied in the order in which they override each other, so the last value that was set holds.
	l := &loader{environ: environment(o.Environ), values: map[string]*Value{}}
	for _, s := range Table() {
		l.values[s.Name] = &Value{Name: s.Name, Description: s.About}
		if err := l.set(s, s.Default, FromDefault); err != nil {
			return Settings{}, nil, err
		}
	}
	if err := l.files(o); err != nil {
		return Settings{}, nil, err
	}
	for _, s := range Table() {
		// An empty variable counts as not set, because a shell cannot easily unset one for a single command.
		if v := l.environ[s.Env()]; v != "" {
			if err := l.set(s, v, fromEnv(s.Env())); err != nil {
				return Settings{}, nil, atPlace(s.Env(), err)
			}
		}
	}
	for name, v := range o.Flags {
		s, ok := find(func(s Setting) bool { return s.Flag() == name })
		if !ok {
			return Settings{}, nil, muster.Errorf(muster.Invalid, "no setting belongs to the flag --%s", name)
		}
		if err := l.set(s, v, fromFlag(name)); err != nil {
			return Settings{}, nil, atPlace("--"+name, err)
		}
	}
	// What the repository may not set is refused only if it would hold. A user who names another model can work in it.
	model := l.values["model"]
	if model.Source == FromRepository && l.errRefused != nil {
		return Settings{}, nil, l.errRefused
	}
	if l.settings.Model == "" {
		l.settings.Model, model.Source = modelByKey(l.environ)
		model.Value = l.settings.Model
	}
	return l.settings, l.list(), nil
}

// loader holds what was gathered so far.
type loader struct {
	settings Settings
	values   map[string]*Value // by the name of the setting
	environ  map[string]string

	// errRefused says what the repository set and may not set. It matters only if no later source overrides it.
	errRefused error
}

// files reads the user's file and then the repository's, which may not set everything.
func (l *loader) files(o Options) error {
	user := UserFile(o.UserDir)
	if user != "" {
		f := fileLoader{loader: l, name: user, source: fromUserFile(user)}
		if err := f.load(user); err != nil {
			return err
		}
	}
	if o.Root == "" {
		return nil
	}
	ownModel := l.settings.Model
	f := fileLoader{loader: l, name: File, source: FromRepository, check: func(s Setting, text string) error {
		if text == ownModel {
			return nil // the user's own file says the same
		}
		return checkRepositoryMaySet(s, text, user)
	}}
	return f.load(filepath.Join(o.Root, File))
}

// set applies a value. A later source overrides an earlier one, and the value changes together with its source.
func (l *loader) set(s Setting, text string, source Source) error {
	if err := s.set(&l.settings, text); err != nil {
		return err
	}
	v := l.values[s.Name]
	v.Value, v.Source = s.show(&l.settings), source
	return nil
}

// list returns the values in the order of the table.
func (l *loader) list() (all []Value) {
	for _, s := range Table() {
		all = append(all, *l.values[s.Name])
	}
	return all
}

// checkRepositoryMaySet refuses what a repository must not decide before the user trusts it: a server of its own
// would receive the user's key and code. user is the path of the user's own file.
func checkRepositoryMaySet(s Setting, text, user string) error {
	if s.Name != "model" {
		return nil
	}
	if _, _, url, err := ParseModel(text); err != nil || url == "" {
		return nil // a name that is wrong altogether is reported when it is set
	}
	if user == "" {
		user = "your own config.yaml"
	}
	return muster.Errorf(muster.Invalid, "a repository may not choose the server that your key and your code go to: "+
		"if you want this model, set the same in %s, else choose one with --model", user)
}

// atPlace puts the place of a mistake in front of its description. Files have a line and a column for it; a variable or
// a flag has only its name.
func atPlace(place string, err error) error {
	return muster.Errorf(muster.Invalid, "%s: %v", place, err)
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

// formatDuration formats a duration without its empty parts: 2m, not 2m0s. The result can be read back as a setting.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
