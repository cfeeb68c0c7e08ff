package team

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster"
	"muster/internal/config"
	"muster/internal/confined"
	"muster/internal/git"
	"muster/internal/hiddenpaths"
	"muster/internal/launchers"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/text"
	"muster/internal/worktree"
)

// runAsMember runs a script as a command of a member, and returns what it has printed. It must end with 0. The error is
// Unavailable where no command can start.
func runAsMember(
	ctx context.Context, l proc.Launcher, dir string, environ []string, script string, args ...string,
) (said string, err error) {
	var out bytes.Buffer
	argv := append(append(proc.Bash(script), "sh"), args...)
	p, err := l.Start(ctx, proc.Spec{Argv: argv, Dir: dir, Env: environ, Out: &out})
	exit := 0
	if err == nil {
		exit, err = p.Wait()
	}
	if err == nil && exit != 0 {
		err = errors.New(cmp.Or(text.OneLine(out.String()), fmt.Sprintf("exit %d", exit)))
	}
	if err != nil && ctx.Err() == nil {
		err = muster.Errorf(muster.Unavailable, "no command of a member can start here: %s", muster.PlainText(err)).
			WithHint("muster doctor says more; --no-sandbox starts commands with your rights")
	}
	return out.String(), err
}

// setLaunchers sets how checks and hooks start, and returns what starts the commands of members. All are logged, and
// what they print has no keys. A hook and a member's command have a temporary directory of its lane or of this process,
// and removeDirs removes the latter; a check has one of its own. A member's command and a check are confined by m,
// unless it is nil, and the git of members has hooks.
func (s *site) setLaunchers(
	ctx context.Context, launcher proc.Launcher, m *sandbox.Method,
) (members proc.Launcher, removeDirs func(), err error) {
	logged := launchers.Logged(s.config.Resources.limit(launcher), s.log, s.secrets)
	members, checks, err := s.confine(ctx, logged, m)
	if err != nil {
		return nil, func() {}, err
	}
	s.workspace.SetLauncher(checks)
	forHooks, removeHooksDir := s.withTemporaryDir(ctx, logged)
	members, removeToolsDir := s.withTemporaryDir(ctx, members)
	foreign := forHooks
	if !s.config.Sandbox.OpenHooks {
		foreign = members
	}
	s.hooks.Start(forHooks, foreign, s.journal)
	return s.hookAgents(ctx, members), func() {
		s.hooks.End()
		removeHooksDir()
		removeToolsDir()
	}, nil
}

// withTemporaryDir returns the launcher whose programs have a temporary directory, and what removes that.
func (s *site) withTemporaryDir(ctx context.Context, l proc.Launcher) (_ proc.Launcher, removeDir func()) {
	lanes, ok := s.lanes.(*worktree.Lanes)
	if !ok {
		return l, func() {}
	}
	return launchers.WithTemporaryDir(l, lanes, func(err error) {
		logDropped(ctx, s.log, "making a temporary directory", err)
	})
}

// hookAgents returns the launcher whose git has hooks that refuse to move refs which are not the agents'.
func (s *site) hookAgents(ctx context.Context, l proc.Launcher) proc.Launcher {
	r, ok := s.repository.(gitRepository)
	if !ok {
		return l
	}
	return withHooks(l, r.Repo, s.workspace.Paths(), s.target(), func(err error) {
		logDropped(ctx, s.log, "writing the hooks of the agents' git", err)
	})
}

// withHooks returns the launcher whose git has the hooks of agents. warn gets the error where they cannot be written.
func withHooks(l proc.Launcher, repo *git.Repo, state paths.Dir, target string, warn func(error)) proc.Launcher {
	return launchers.WithHooks(l, sync.OnceValue(func() *git.AgentHooks {
		dir := filepath.Join(".team", "githooks")
		hooks, err := git.NewAgentHooks(repo, string(state), dir, state.Scratch(), target)
		warn(err)
		return hooks
	}))
}

// Sandbox says how the commands of members are confined, and the check and the set-up, which run what members have
// written. The zero value confines nothing.
type Sandbox config.Sandbox

// openChecks ends what is said of rights where checks are not confined.
const openChecks = "; the check runs with your rights"

// Rights says in a line what the commands of members may do, as far as the settings tell.
func (s Sandbox) Rights() string {
	if !s.On {
		return "commands are not confined: they run with your rights"
	}
	text := "commands are confined: they write only in their worktrees, "
	if len(s.Network) > 0 {
		text += "and reach only " + strings.Join(s.Network, ", ")
	} else {
		text += "no network"
	}
	if s.OpenChecks {
		text += openChecks
	}
	return text
}

// rightsBy is Rights with what the method that works here cannot give.
func (s Sandbox) rightsBy(m *sandbox.Method) string {
	if m == nil || m.HasNamespaces {
		return s.Rights()
	}
	text := fmt.Sprintf("commands are confined by %s: they write only in their own worktrees and have %s, because %s",
		m.Name, m.Lacks, m.Why)
	if s.OpenChecks {
		text += openChecks
	}
	return text
}

// limitsBy tells a model what its commands cannot do with the method that works here; "" where they are not confined.
func (s Sandbox) limitsBy(m *sandbox.Method) string {
	switch {
	case !s.On:
		return ""
	case m != nil && !m.HasNamespaces:
		return "write only the working directory, $TMPDIR (not /tmp) and caches; have no network, not even " +
			"localhost, so tests that start servers fail; git fetch and git push fail"
	}
	return "write only the working directory, $TMPDIR and caches; reach only " +
		strings.Join(append([]string{"localhost"}, s.Network...), ", ") + "; git fetch and git push fail"
}

// confine returns the launchers of members' commands and of checks, confined by m. Each is l where it is not.
func (s *site) confine(
	ctx context.Context, l proc.Launcher, m *sandbox.Method,
) (members, checks proc.Launcher, err error) {
	lanes, isGit := s.lanes.(*worktree.Lanes)
	repo, isRepo := s.repository.(gitRepository)
	if !isGit || !isRepo {
		return l, l, nil
	}
	place := s.config.placeOf(m, repo.Repo, lanes, s.workspace.Paths())
	tell := func(text string) { s.note(ctx, "", text) }
	forMembers, forChecks := s.config.explained(l, place, m != nil, tell), s.config.explainedChecks(l, place, tell)
	if m == nil {
		members, err = confined.NewMembers(forMembers, place, &confined.Network{})
		return members, forChecks, err
	}
	s.helper.set(confined.NewOwn(l, place))
	network, setup := s.config.Sandbox.networks(tell)
	if members, err = confined.NewMembers(forMembers, place, network); err != nil {
		return nil, nil, err
	}
	checks, err = s.config.Sandbox.newChecks(forChecks, place, network, setup)
	return members, checks, err
}

func (s Sandbox) newChecks(
	l proc.Launcher, p *confined.Place, network, setup *confined.Network,
) (proc.Launcher, error) {
	checks, err := confined.NewChecks(l, p, network, setup)
	if err == nil && s.OpenChecks {
		return checks.Open(), nil
	}
	return checks, err
}

// explainedChecks is explained for checks and set-ups, which a setting may leave unconfined.
func (c *Config) explainedChecks(l proc.Launcher, place *confined.Place, tell func(text string)) proc.Launcher {
	return c.explained(l, place, place.Method != nil && !c.Sandbox.OpenChecks, tell)
}

// explained returns the launcher whose programs, where they fail, end their output with what they have missed: a
// program that is only in the user's checkout, or, of those that are confined, what the sandbox hides. tell tells the
// user; nil tells nobody.
func (c *Config) explained(
	l proc.Launcher, place *confined.Place, isConfined bool, tell func(text string),
) proc.Launcher {
	programs, hidden := c.programs(place.Repo), (*hiddenpaths.Paths)(nil)
	if isConfined {
		hidden = place.Hidden(tell)
	}
	return launchers.Explained(l, func(s proc.Spec, output string) string {
		if hidden != nil {
			if line := hidden.Line(s, output); line != "" {
				return line
			}
		}
		return programs.Missing(output, s.Dir)
	})
}

// programs finds programs that are only in a checkout of the user's.
func (c *Config) programs(repo *git.Repo) launchers.Programs {
	return launchers.Programs{Roots: []string{repo.Root(), repo.Here()}, Environ: c.wholeEnviron()}
}

// findSandbox returns what confines programs in the repository at root, nil where the settings want nothing. What
// cannot be confined does not begin.
func (c *Config) findSandbox(ctx context.Context, root string) (*sandbox.Method, error) {
	if !c.Sandbox.On {
		return nil, nil
	}
	return sandbox.Find(ctx, c.wholeEnviron(), root)
}

// confineTrial returns the launcher of a check that nobody's landing waits for, confined as those of a run are.
func (c *Config) confineTrial(
	ctx context.Context, l proc.Launcher, repo *git.Repo, lanes *worktree.Lanes, state paths.Dir,
) (proc.Launcher, error) {
	m, err := c.findSandbox(ctx, repo.Root())
	if err != nil {
		return nil, err
	}
	place := c.placeOf(m, repo, lanes, state)
	if m == nil {
		return c.explainedChecks(l, place, nil), nil
	}
	// What was refused is said at the end of the output.
	network, setup := c.Sandbox.networks(func(string) {})
	return c.Sandbox.newChecks(c.explainedChecks(l, place, nil), place, network, setup)
}

// gitHelper is what starts git for the runtime where members write. It is opened when it is needed first.
type gitHelper struct {
	sync.Mutex
	now      git.Helper
	isSet    bool // now is of the launcher of a run
	launcher proc.Launcher
}

// set sets the helper of a run, which nil ends.
func (h *gitHelper) set(now git.Helper) {
	h.Lock()
	defer h.Unlock()
	h.now, h.isSet = now, now != nil
}

func (h *gitHelper) close() error {
	h.Lock()
	defer h.Unlock()
	if h.launcher == nil {
		return nil
	}
	return h.launcher.Close()
}

// openHelper returns what starts git where members write; nil where the settings confine nothing.
func (s *site) openHelper(ctx context.Context) (git.Helper, error) {
	h, c, w := s.helper, &s.config, s.workspace
	h.Lock()
	defer h.Unlock()
	isOn := c.Sandbox.On
	if c.IsConfined != nil {
		isOn = c.IsConfined()
	}
	if h.now != nil || !isOn {
		return h.now, nil
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	m, err := sandbox.Find(ctx, c.wholeEnviron(), repo.Root())
	if err != nil {
		return nil, err
	}
	if h.launcher == nil {
		if h.launcher, err = s.launch(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	h.now = confined.NewOwn(h.launcher, c.placeOf(m, repo, lanes, w.Paths()))
	return h.now, nil
}

func (c *Config) placeOf(m *sandbox.Method, repo *git.Repo, lanes *worktree.Lanes, state paths.Dir) *confined.Place {
	return &confined.Place{Method: m, Repo: repo, Lanes: lanes, State: state, Home: c.Home, UserDir: c.UserDir,
		CacheDir: c.CacheDir, Environ: c.wholeEnviron(), Read: config.InHome(c.Home, c.Sandbox.Read),
		Write: config.InHome(c.Home, c.Sandbox.Write)}
}

// networks returns the networks of commands and of the set-up. tell tells the user what was refused.
func (s Sandbox) networks(tell func(text string)) (commands, setup *confined.Network) {
	// The line has the hosts of before, so that it can take the place of the one that is there.
	network := func(setting string, before, hosts []string) *confined.Network {
		return &confined.Network{Hosts: hosts, Setting: "sandbox." + setting, Tell: func(host string) {
			all := strings.Join(append(slices.Clone(before), host), ", ")
			tell(fmt.Sprintf("a command was refused the network host %s; to allow it, in your own config.yaml: "+
				"sandbox: {%s: %q}", host, setting, all))
		}}
	}
	return network("network", s.Network, s.Network),
		network("setup_network", s.SetupNetwork, slices.Concat(s.Network, s.SetupNetwork))
}
