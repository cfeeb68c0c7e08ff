package workspace

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/hooks"
	"muster/internal/localfiles"
	"muster/internal/memory"
	"muster/internal/permissions"
	"muster/internal/trust"
)

// verifyState refuses state that muster did not make for this user on this machine. It writes nothing.
func verifyState(w *Workspace) error {
	o := &w.options
	w.common = commonDir(w.root)
	if o.Repo != nil {
		w.common = o.Repo.CommonDir()
	}
	if w.common == "" && o.Store != nil {
		return nil // a team in memory, in tests without git
	}
	if o.Registry == nil {
		o.Registry = trust.Open(os.Getenv)
	}
	if o.isUnverified {
		return nil
	}
	return o.Registry.CheckState(repositoryOf(w))
}

// MemoryOf returns what is remembered of the repository of w. Where muster has made no state yet, or where there is no
// repository, nothing is.
func MemoryOf(w *Workspace) (memory.Dir, error) {
	if w.common == "" {
		return memory.Dir{}, nil
	}
	dir, err := w.options.Registry.MemoryDir(w.common)
	return memory.Dir{Path: dir, Registry: w.options.Registry}, err
}

// UserMemory returns what the user has the teams of all repositories know, as w reads it. settings is the directory of
// the user's settings; "" is none.
func UserMemory(w *Workspace, settings string) memory.Dir {
	if settings == "" {
		return memory.Dir{}
	}
	return memory.Dir{Path: filepath.Join(settings, "memory"), Registry: w.options.Registry}
}

// repositoryOf returns what package trust must know of the repository.
func repositoryOf(w *Workspace) trust.Repository {
	return trust.Repository{Root: w.root, Common: w.common, Tracked: func(below []string) ([]string, error) {
		if !mayTrack(w.common, below) {
			return nil, nil
		}
		// No caller waits for longer than one question to git takes.
		repo, err := w.Repo(context.Background())
		if err != nil {
			return nil, err
		}
		return tracked(context.Background(), repo, below)
	}}
}

// beforeMakeDir is Mark for what makes directories, which has no context.
func beforeMakeDir(w *Workspace) func() error {
	return func() error { return w.Mark(context.Background()) }
}

// Mark marks the repository as one in which muster makes state for this user. The store and the lanes call it before
// they make a directory.
func (w *Workspace) Mark(ctx context.Context) error {
	// What comes to lie beside the team's state in a marked repository is not looked at before the next opening.
	if w.common == "" || w.isMarked.Load() {
		return nil // nothing lies on a disk, or the mark is durable
	}
	// State that came after the workspace was opened is not this user's either.
	if err := w.options.Registry.CheckState(repositoryOf(w)); err != nil {
		return err
	}
	_, err := w.options.Registry.Mark(ctx, w.common, w.root)
	if err == nil {
		w.isMarked.Store(true)
	}
	return err
}

// Trust is what the user has said about the settings that this repository brings.
type Trust struct{ w *Workspace }

// Trust returns what the user has said about the settings that this repository brings.
func (w *Workspace) Trust() Trust { return Trust{w} }

// Get returns what the user has said. It writes nothing.
func (t Trust) Get() (trust.Settings, error) {
	if t.w.common == "" {
		return trust.Settings{}, nil
	}
	return t.w.options.Registry.Settings(t.w.common)
}

// Change changes what the user has said. It is refused inside of the team's own tools: what an agent says is not what
// the user says.
func (t Trust) Change(ctx context.Context, change func(*trust.Settings)) error {
	w := t.w
	if err := w.PrepareChange(ctx); err != nil || w.common == "" {
		return err
	}
	return w.options.Registry.ChangeSettings(ctx, w.common, w.root, change)
}

// DriverItems returns the filters and merge drivers of the repository's own config, a line for each value, if the user
// does not trust them with just this content. They do not run.
func (t Trust) DriverItems(ctx context.Context) ([]trust.Item, error) {
	repo, err := t.w.Repo(ctx)
	if err != nil || len(repo.UntrustedDrivers()) == 0 {
		return nil, err
	}
	return []trust.Item{driverItem(repo.UntrustedDrivers())}, nil
}

// LocalFileItems returns .worktreeinclude, with the files that it names now unless the user trusts it.
func (t Trust) LocalFileItems(ctx context.Context) ([]trust.Item, error) {
	item, ok, err := localfiles.Item(t.w.root)
	if err != nil || !ok {
		return nil, err
	}
	if trusted, err := t.Get(); err != nil || trusted.TrustsItem(item) {
		return []trust.Item{item}, err
	}
	repo, err := t.w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	files, err := localfiles.Read(ctx, repo, item.Text)
	item.Now = strings.Join(files.Names(), "\n")
	return []trust.Item{item}, err
}

// LocalFiles returns the files that .worktreeinclude names; nil where there is none that the user trusts.
func (t Trust) LocalFiles(ctx context.Context) (*localfiles.Set, error) {
	item, ok, err := localfiles.Item(t.w.root)
	if err != nil || !ok {
		return nil, err
	}
	if trusted, err := t.Get(); err != nil || !trusted.TrustsItem(item) {
		return nil, err
	}
	repo, err := t.w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	return localfiles.Read(ctx, repo, item.Text)
}

// Hooks returns the hooks of the user and of the repository, with the reason of each that does not run. home is the
// user's home directory. Without Options.Config there are none.
func (t Trust) Hooks(home string) ([]hooks.Hook, error) {
	w := t.w
	if w.options.Config == nil {
		return nil, nil
	}
	settings, _, errSettings := w.Settings(nil)
	trusted, errTrusted := t.Get()
	if err := cmp.Or(errSettings, errTrusted); err != nil {
		return nil, err
	}
	if !settings.ClaudeHooks {
		home = ""
	}
	all, err := hooks.Find(w.root, home, settings.SectionsNamed("hooks"), trusted.TrustsItem)
	for i := range all {
		all[i].MayBreak = settings.BrokenHooks == "pass"
	}
	return all, err
}

// Permissions returns what the settings say of permissions, and what the user has allowed here for good. Without
// Options.Config there are none.
func (t Trust) Permissions() (p permissions.Settings, granted []string, err error) {
	w := t.w
	if w.options.Config == nil {
		return p, nil, nil
	}
	settings, _, errSettings := w.Settings(nil)
	trusted, errTrusted := t.Get()
	if err := cmp.Or(errSettings, errTrusted); err != nil {
		return p, nil, err
	}
	p, err = permissions.FromSections(settings.SectionsNamed(permissions.Section))
	rules, _ := permissions.FromClaude(w.root, hooks.IsTool)
	p.Rules = append(p.Rules, rules...)
	for _, g := range trusted.Allowed {
		if g.Kind == trust.Permission {
			granted = append(granted, g.Name)
		}
	}
	return p, granted, err
}

// PermissionNotes returns a line for each file of the repository whose rules for Claude Code do not all hold.
func (t Trust) PermissionNotes() []string {
	if t.w.options.Config == nil {
		return nil
	}
	_, notes := permissions.FromClaude(t.w.root, hooks.IsTool)
	return notes
}

// driverItem returns the drivers of the repository's own config as an item.
func driverItem(lines []string) trust.Item {
	return trust.Item{Name: "git drivers", File: trust.GitConfig, Text: strings.Join(lines, "\n")}
}

// armDrivers lets the drivers of the repository's own config run if the user trusts them.
func armDrivers(w *Workspace, repo *git.Repo) error {
	lines := repo.UntrustedDrivers()
	if len(lines) == 0 {
		return nil
	}
	trusted, err := w.Trust().Get()
	if err == nil && trusted.TrustsItem(driverItem(lines)) {
		repo.TrustDrivers()
	}
	return err
}

// ConfirmTarget refuses a branch that a run's record names for its work, unless it is the team's own, muster/NAME, or
// one that the user names now or has named for a team here before.
func ConfirmTarget(ctx context.Context, w *Workspace, team muster.Name, target, named string) error {
	if w.common == "" || target == "muster/"+string(team) && muster.CheckName(team) == nil {
		return nil
	}
	settings, err := w.Trust().Get()
	if err != nil || slices.Contains(settings.Targets, target) {
		return err
	}
	if target == named {
		add := func(s *trust.Settings) { s.AddTarget(target) }
		return w.options.Registry.ChangeSettings(ctx, w.common, w.root, add)
	}
	return muster.Errorf(muster.Invalid,
		"the team's record says that its work lands on %q, and you have named no such branch for it", target).
		WithHint("if it is right:   muster run --add --land BRANCH \"GOAL\"\nput it aside:     muster archive --yes")
}

// commonDir returns git's common directory of the repository whose main worktree has this root. There .git is a
// directory, or a file that names one: in a submodule, and after git init --separate-git-dir. It is "" where there is
// none.
func commonDir(root string) string {
	path := filepath.Join(root, ".git")
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return path
	}
	dir := git.DirOf(root)
	if dir == "" {
		return ""
	}
	if data, err := durable.ReadRegular(filepath.Join(dir, "commondir"), git.MaxFile); err == nil {
		dir = filepath.Join(dir, strings.TrimSpace(string(data)))
	}
	return dir
}
