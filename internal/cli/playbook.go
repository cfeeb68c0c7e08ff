package cli

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster"
	"muster/internal/durable"
	"muster/team"
)

// playbookFlags are the flags of muster run that concern a playbook.
type playbookFlags struct {
	file     string
	params   []string
	isDryRun bool
}

func (p *playbookFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.file, "playbook", "", "`FILE` with the tasks of the run: see docs/playbooks.md")
	f.StringArrayVar(&p.params, "param", nil, "`NAME=VALUE` of a parameter of the playbook")
	f.BoolVar(&p.isDryRun, "dry-run", false, "print the tasks of the playbook, and make nothing")
}

// read reads the playbook and its parameters. What the file says is checked when the tasks are made of it.
func (p *playbookFlags) read(c *cobra.Command, a *App) (*team.Playbook, error) {
	b := &team.Playbook{File: p.file, Params: map[string]string{}}
	for _, text := range p.params {
		name, value, ok := strings.Cut(text, "=")
		if _, isTwice := b.Params[name]; !ok || isTwice {
			return nil, &usageError{c.CommandPath(), "--param is NAME=VALUE, once for each name"}
		}
		b.Params[name] = value
	}
	path := p.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.workDir(), path)
	}
	var err error
	if b.Data, err = durable.ReadRegular(path, team.MaxPlaybook); errors.Is(err, fs.ErrNotExist) {
		return nil, muster.Errorf(muster.NotFound, "there is no playbook %s", p.file).
			WithHint("give the path of the file:  muster run --playbook FILE")
	} else if err != nil {
		return nil, muster.Errorf(muster.Invalid, "the playbook %s cannot be read: %w", p.file, err)
	}
	return b, nil
}

// dryRun prints the tasks that a playbook would put on the board. It writes nothing.
func (r runCommands) dryRun(ctx context.Context, flags map[string]string, how team.Start) error {
	o, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	settings, _, err := o.workspace.Settings(flags) // none of those that are used needs trust
	if err != nil {
		return err
	}
	t, err := team.OpenIn(o.workspace, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
		Settings: settings.Run, Name: muster.Name(settings.Team), Secrets: secretValues(r.App)})
	if err != nil {
		return err
	}
	tasks, err := t.Tasks().Planned(ctx, how)
	if err != nil {
		return err
	}
	return taskCommands(r).printList(taskFilter{all: true}, tasks)
}
