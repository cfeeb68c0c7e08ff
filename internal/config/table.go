package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
)

// Setting describes one setting: a row of the table.
type Setting struct {
	// Name is the name in the files. A dot separates levels.
	Name    string
	Default string
	// About describes the setting in one line.
	About string
	// at returns a pointer to the field of Settings. The field's type decides how text is read.
	at func(*Settings) any
	// least is the smallest allowed number or duration.
	least int
	// words are the only allowed values; if empty, every text is allowed.
	words []string
}

// Table lists every setting, in the order in which muster config prints them. The files, the environment, the flags,
// the help and the documentation all follow it, so a setting is added here and nowhere else.
func Table() []Setting {
	return []Setting{
		{Name: "model", About: "the model, as provider/model; by default by whichever key is set",
			at: func(s *Settings) any { return &s.Model }},
		{Name: "teammates", Default: "4", About: "how many teammates may live at once; 0: the lead does everything",
			at: func(s *Settings) any { return &s.Teammates }},
		{Name: "check", About: "the command that proves the merged tree; without one nothing is verified",
			at: func(s *Settings) any { return &s.Check }},
		{Name: "setup", About: "the command that runs before the check in a fresh checkout",
			at: func(s *Settings) any { return &s.Setup }},
		{Name: "land", About: "the branch that work lands on; by default muster/TEAM",
			at: func(s *Settings) any { return &s.Land }},
		{Name: "team", About: "the team's name; by default made of the repository directory's",
			at: func(s *Settings) any { return &s.Team }},
		{Name: "max_turns", Default: "50", About: "how many turns a member has in a work phase",
			at: func(s *Settings) any { return &s.MaxTurns }, least: 1},
		{Name: "max_tokens", Default: "8000", About: "how many tokens a reply may have",
			at: func(s *Settings) any { return &s.MaxTokens }, least: 1},
		{Name: "subagent_turns", Default: "30", About: "how many turns a subagent has",
			at: func(s *Settings) any { return &s.SubagentTurns }, least: 1},
		{Name: "effort", About: "how hard the model thinks, where it can be told",
			at:    func(s *Settings) any { return &s.Effort },
			words: []string{"", "minimal", "low", "medium", "high", "xhigh", "max"}},
		{Name: "idle_timeout", Default: "1m", About: "how long an idle teammate stays; 0: for ever",
			at: func(s *Settings) any { return &s.IdleTimeout }},
		{Name: "bash_timeout", Default: "2m", About: "how long a command of a member may run",
			at: func(s *Settings) any { return &s.BashTimeout }, least: 1},
		{Name: "background_timeout", Default: "5m", About: "how long a background command may run",
			at: func(s *Settings) any { return &s.BackgroundTimeout }, least: 1},
		{Name: "check_timeout", Default: "10m", About: "how long a check may run",
			at: func(s *Settings) any { return &s.CheckTimeout }, least: 1},
		{Name: "worktrees.dir", About: "where lanes are made; by default .worktrees in the repository",
			at: func(s *Settings) any { return &s.WorktreesDir }},
		{Name: "landing.merge_commits", Default: "false",
			About: "land each task as a merge commit that keeps its lane's own commits",
			at:    func(s *Settings) any { return &s.MergeCommits }},
	}
}

// Env returns the name of the environment variable that sets it.
func (s Setting) Env() string {
	return "MUSTER_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
}

// Flag returns the name of the flag that sets it, without dashes in front.
func (s Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Name) }

// set parses the text into its field. The error is a sentence without the place, which the caller adds.
func (s Setting) set(into *Settings, text string) error {
	switch at := s.at(into).(type) {
	case *string:
		if len(s.words) > 0 && !slices.Contains(s.words, text) {
			return muster.Errorf(muster.Invalid, "%s is one of %s, not %s", s.Name, strings.Join(s.words[1:], ", "),
				strconv.Quote(text))
		}
		// A wrong name is reported where it was written, with its line, and not when the first member starts.
		if s.Name == "model" && text != "" {
			if _, _, _, err := ParseModel(text); err != nil {
				return err
			}
		}
		if s.Name == "team" && text != "" {
			if err := muster.CheckName(muster.Name(text)); err != nil {
				return err
			}
		}
		*at = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || n < s.least {
			return muster.Errorf(muster.Invalid, "%s is a whole number, at least %d, not %s", s.Name, s.least,
				strconv.Quote(text))
		}
		*at = n
	case *bool:
		if text != "true" && text != "false" {
			return muster.Errorf(muster.Invalid, "%s is true or false, not %s", s.Name, strconv.Quote(text))
		}
		*at = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Duration(s.least) {
			return muster.Errorf(muster.Invalid, "%s is a duration with its unit, such as 90s or 2m, not %s", s.Name,
				strconv.Quote(text))
		}
		*at = d
	}
	return nil
}

// show returns the value as people read it, without secrets.
func (s Setting) show(from *Settings) string {
	switch at := s.at(from).(type) {
	case *int:
		return strconv.Itoa(*at)
	case *bool:
		return strconv.FormatBool(*at)
	case *time.Duration:
		return formatDuration(*at)
	case *string:
		if s.Name == "model" {
			return withoutQuery(*at)
		}
		return *at
	}
	return ""
}

// find returns the first setting for which is returns true.
func find(is func(Setting) bool) (Setting, bool) {
	all := Table()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Setting{}, false
}
