package permissions

import (
	"runtime"
	"time"

	"muster"
	"muster/internal/config"
)

// Section is the name of the section of the settings that has the permissions.
const Section = "permissions"

// Settings are what the settings say of permissions.
type Settings struct {
	Policy
	// Wait is how long a question waits; negative: it is decided at once. 0 is the default.
	Wait time.Duration
}

// section is the section as it is written.
type section struct {
	Mode  Mode     `yaml:"mode"`
	Wait  string   `yaml:"wait"`
	Deny  []string `yaml:"deny"`
	Ask   []string `yaml:"ask"`
	Allow []string `yaml:"allow"`
}

// FromSections reads the sections of the settings. That of a repository may only deny and ask: it can forbid what the
// user allows, and never allow anything. A mistake in a rule is an error with its place: a rule that is silently left
// out would be worse than none.
func FromSections(sections []config.Section) (all Settings, err error) {
	for _, s := range sections {
		var in section
		file := s.File
		if s.IsTrusted() { // its path is long, and of no use to a model
			file = "the user's config.yaml"
		}
		if err := s.Decode(s.Node, &in); err != nil {
			return all, err
		}
		switch {
		case !s.IsTrusted() && (in.Mode != "" || in.Wait != "" || in.Allow != nil):
			return all, s.Errorf(s.Node,
				"a repository may only deny and ask: set mode, wait and allow in your own config.yaml")
		case in.Mode != "" && in.Mode != Auto && in.Mode != AskFirst && in.Mode != Plan:
			return all, s.Errorf(s.Node, "the mode is plan, ask or auto, not %q", in.Mode)
		case in.Mode != "":
			all.Mode = in.Mode
		}
		if in.Wait != "" {
			if all.Wait, err = time.ParseDuration(in.Wait); err != nil || all.Wait < 0 {
				return all, s.Errorf(s.Node, "wait is a duration with its unit, such as 5m, or 0s, not %q", in.Wait)
			}
			if all.Wait == 0 {
				all.Wait = -1
			}
		}
		for action, texts := range [][]string{in.Allow, in.Ask, in.Deny} {
			for _, text := range texts {
				r, err := ParseRule(Action(action), text, file)
				if err != nil {
					return all, s.Errorf(s.Node, "%s", muster.PlainText(err))
				}
				all.Rules = append(all.Rules, r)
			}
		}
	}
	if all.Mode == "" {
		all.Mode = defaultMode(runtime.GOOS)
	}
	return all, nil
}

// defaultMode returns the mode of a system where the settings name none. Where nothing can confine commands
// (package sandbox), the user is asked about each.
func defaultMode(system string) Mode {
	if system == "linux" || system == "darwin" {
		return Auto
	}
	return AskFirst
}
