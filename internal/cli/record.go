package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"muster"
	"muster/internal/config"
	"muster/internal/recording"
	"muster/internal/redact"
	"muster/internal/trust"
	"muster/team"
)

// recordedOptions are the settings of a run that decide what its members do, and that a recording may therefore bring
// into a replay: none of them starts, reads or reaches anything.
type recordedOptions struct {
	Model         string                  `json:"model"`
	Roles         map[string]*config.Role `json:"roles,omitempty"`
	MaxTurns      int                     `json:"max_turns"`
	MaxTokens     int                     `json:"max_tokens"`
	SubagentTurns int                     `json:"subagent_turns"`
	TodoLimit     int                     `json:"todo_limit"`
	TodoReminder  int                     `json:"todo_reminder"`
	KeptResults   int                     `json:"kept_results"`
	IdleTimeout   time.Duration           `json:"idle_timeout"`
	BashTimeout   time.Duration           `json:"bash_timeout"`
	Background    time.Duration           `json:"background_timeout"`
	CheckTimeout  time.Duration           `json:"check_timeout"`
	MergeCommits  bool                    `json:"merge_commits"`
	ArbiterTurns  int                     `json:"arbiter_turns"`
	Goal          string                  `json:"goal"` // "" where the playbook says it
	Playbook      *team.Playbook          `json:"playbook,omitempty"`
	// CommandLimits is what members were told of the sandbox. Whether there is one is for the user of a replay to say.
	CommandLimits string `json:"command_limits,omitempty"`
}

// recordFlag adds the flag that records a run.
func recordFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "record", "", "record the run in `FILE`, a new one, for muster replay")
}

// newRecorder makes the file in which a run in the repository at root is recorded. It returns nil where no path is
// named.
func newRecorder(ctx context.Context, a *App, path, root string, j Job) (*recording.Recorder, error) {
	s := j.Settings
	if path == "" {
		return nil, nil //nolint:nilnil // Nothing is recorded, and that is no error.
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.workDir(), path)
	}
	// A replay proves by this key that the recording was made on this machine.
	key, err := trust.Open(a.env).RecordingKey(ctx)
	if err != nil {
		return nil, err
	}
	options, err := json.Marshal(recordedOptions{config.Stored(s.Model), s.Roles, s.MaxTurns, s.MaxTokens,
		s.SubagentTurns, s.TodoLimit, s.TodoReminder, s.KeptResults, s.IdleTimeout, s.BashTimeout, s.BackgroundTimeout,
		s.CheckTimeout, s.MergeCommits, s.ArbiterTurns, j.Goal, j.How.Playbook,
		confinement(s).Limits(ctx, root)})
	if err != nil {
		return nil, err
	}
	// What is secret in the model and its endpoints must not reach a file that is passed on.
	secrets := redact.New(append(secretValues(a), append(redact.InURLs(s.Model), s.Endpoints.Secrets()...)...)...)
	return recording.Create(path, thisBuild().Version, options, secrets.JSON, key)
}

// hideRecording lets git ignore a recording in the repository: it is no file that a member has made there.
func hideRecording(ctx context.Context, o opened, path string) error {
	repo, err := o.workspace.Repo(ctx)
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return muster.Errorf(muster.Invalid, "the recording %s cannot be written: %w", path, err).
			WithHint("name a file in a directory that exists")
	}
	below, err := filepath.Rel(repo.Root(), filepath.Join(dir, filepath.Base(path)))
	if err != nil || !filepath.IsLocal(below) {
		return nil //nolint:nilerr // It lies elsewhere.
	}
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)
	return repo.Exclude(ctx, []string{"/" + escape.Replace(filepath.ToSlash(below))})
}

// apply puts the options into settings.
func (o recordedOptions) apply(s *config.Settings) {
	s.Model, s.Roles, s.MaxTurns, s.MaxTokens = o.Model, o.Roles, o.MaxTurns, o.MaxTokens
	s.SubagentTurns, s.TodoLimit, s.TodoReminder, s.KeptResults = o.SubagentTurns, o.TodoLimit, o.TodoReminder,
		o.KeptResults
	s.IdleTimeout, s.BashTimeout, s.BackgroundTimeout = o.IdleTimeout, o.BashTimeout, o.Background
	s.CheckTimeout, s.MergeCommits, s.ArbiterTurns = o.CheckTimeout, o.MergeCommits, o.ArbiterTurns
	s.CommandLimits = &o.CommandLimits
}

// closeRecorder ends the recording of a run. What could not be recorded is said, and the run has ended as it has.
func closeRecorder(a *App, r *recording.Recorder, sum team.Summary, err error) {
	if r == nil {
		return
	}
	var end *recording.End
	if err == nil {
		end = &recording.End{Code: sum.Code, Text: sum.Text}
	}
	if err := r.Close(end); err != nil {
		explain(a.Stderr, muster.PlainText(err), "")
	}
}
