// Package config holds the settings, each with the place it came from: flags over environment (MUSTER_*) over
// muster.yaml in the repository over the user's config.yaml over the default.
//
// table.go lists the settings; models.go reads the names of models.
package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster"
)

// Settings are the settings as they hold.
type Settings struct {
	Model     string // provider/model; "" when none is set and no key says which
	Teammates int
	Check     string
	Setup     string
	Land      string
	Team      string

	MaxTurns          int
	MaxTokens         int
	SubagentTurns     int
	Effort            string
	IdleTimeout       time.Duration // 0: never
	BashTimeout       time.Duration
	BackgroundTimeout time.Duration
	CheckTimeout      time.Duration

	WorktreesDir string
	MergeCommits bool
}

// Value is a setting for people: what it is and where that came from. It never holds a secret.
type Value struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	Source      string `json:"source"` // default, user config PATH, muster.yaml, env NAME, flag --x
	Description string `json:"description"`
}

// Options say where to look.
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

// File is the settings' file in a repository.
const File = "muster.yaml"

// UserFile is the user's own file, given the directory of Options; "" when the system names none.
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

// Load gathers the settings. Errors are Invalid, with the place. Without a model, the one whose key is set is taken;
// with no key either Model stays empty, and Choose says what to do.
func Load(o Options) (Settings, []Value, error) {
	l := &loader{environ: environment(o.Environ), source: map[string]string{}}
	for _, s := range Table() {
		if err := l.set(s, s.Default, "default"); err != nil {
			return Settings{}, nil, err
		}
	}
	user := UserFile(o.UserDir)
	if user != "" {
		if err := l.file(user, user, "user config "+user, func(Setting, string) error { return nil }); err != nil {
			return Settings{}, nil, err
		}
	}
	if o.Root != "" {
		own := l.settings.Model
		err := l.file(filepath.Join(o.Root, File), File, File, func(s Setting, text string) error {
			if text == own {
				return nil // the user says the same
			}
			return trusted(s, text, user)
		})
		if err != nil {
			return Settings{}, nil, err
		}
	}
	for _, s := range Table() {
		if v := l.environ[s.Env()]; v != "" {
			if err := l.set(s, v, "env "+s.Env()); err != nil {
				return Settings{}, nil, wrong(s.Env(), err)
			}
		}
	}
	for name, v := range o.Flags {
		s, ok := find(func(s Setting) bool { return s.Flag() == name })
		if !ok {
			return Settings{}, nil, muster.Errorf(muster.Invalid, "no setting belongs to the flag --%s", name)
		}
		if err := l.set(s, v, "flag --"+name); err != nil {
			return Settings{}, nil, wrong("--"+name, err)
		}
	}
	if l.source["model"] == File && l.refused != nil {
		return Settings{}, nil, l.refused
	}
	if l.settings.Model == "" {
		l.settings.Model, l.source["model"] = modelByKey(l.environ)
	}
	return l.settings, l.values(), nil
}

// trusted refuses what a repository must not decide before the user trusts it.
func trusted(s Setting, text, user string) error {
	if s.Name != "model" {
		return nil
	}
	if _, _, url, err := ParseModel(text); err != nil || url == "" {
		return nil // what is no name at all is found when it is set
	}
	if user == "" {
		user = "your own config.yaml"
	}
	return muster.Errorf(muster.Invalid, "a repository may not choose the server that your key and your code go to: if you want this model, set the same in %s, else choose one with --model", user)
}

// loader holds what was gathered so far.
type loader struct {
	settings Settings
	environ  map[string]string
	source   map[string]string // by setting
	refused  error             // what the repository set and may not; it matters only if nothing overrides it
}

// set takes over a value; a later source overrides an earlier one.
func (l *loader) set(s Setting, text, source string) error {
	l.source[s.Name] = source
	return s.set(&l.settings, text)
}

func (l *loader) values() (vs []Value) {
	for _, s := range Table() {
		vs = append(vs, Value{Name: s.Name, Value: s.show(&l.settings), Source: l.source[s.Name], Description: s.About})
	}
	return vs
}

// wrong puts the place of a mistake in front of what it is.
func wrong(place string, err error) error { return muster.Errorf(muster.Invalid, "%s: %v", place, err) }

func environment(list []string) map[string]string {
	m := map[string]string{}
	for _, e := range list {
		if k, v, ok := strings.Cut(e, "="); ok {
			m[k] = v
		}
	}
	return m
}

// short is a duration without its empty parts: 2m, not 2m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func quote(text string) string { return strconv.Quote(text) }
