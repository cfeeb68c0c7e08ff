package team

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/collision"
	"muster/internal/durable"
	"muster/internal/mcp"
	"muster/internal/memory"
	"muster/internal/permissions"
	"muster/internal/proc"
	"muster/internal/roles"
	"muster/internal/sandbox"
	"muster/internal/setup"
	"muster/internal/skills"
	"muster/internal/teammate"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/llm"
	"muster/loop"
)

// members makes the members that live in this process of their records.
type members struct {
	site        *site
	models      *models
	wake        chan struct{} // holds one token: the supervisor is to reconcile
	skills      []skills.Skill
	roles       []roles.Role
	talk        teammate.Talk // nil: the user is in no conversation
	permissions permissions.Settings
	granted     []string // what the user has allowed for good
	memory      func() (repository, user memory.Dir)
	readyLane   func(context.Context, muster.Lane) string

	// The following is set by the host, before a member is made.
	confinedBy *sandbox.Method // nil: commands are not confined
	launcher   proc.Launcher   // of commands
	phases     *phaseWatch     // nil: nobody looks at what changes meanwhile
	collisions *collision.Watcher
	mcp        *mcp.Pool // nil: there are no servers
}

func newMembers(ctx context.Context, at *site, models *models, wake chan struct{}) (m *members, err error) {
	w, c := at.workspace, &at.config
	m = &members{site: at, models: models, wake: wake, skills: c.skills(w.Paths()), roles: c.roleFiles(w.Paths())}
	m.talk = c.Conversation.listen(at.post, w.Store().Leases())
	m.memory, m.readyLane = m.remembered(ctx), m.laneReadier()
	// A CI service has nobody who could answer a question: there none waits, unless the settings say how long.
	m.permissions, m.granted, err = at.trust.Permissions()
	if m.permissions.Wait == 0 && proc.Variable(c.wholeEnviron(), "CI") != "" {
		m.permissions.Wait = -1
	}
	return m, err
}

// configOf returns what package teammate makes a member of, by its record and the name of its model. It is the only
// function that knows of what that is put together.
func (m *members) configOf(record muster.Member, model string, noImages bool) *teammate.Config {
	s, w := m.site, m.site.workspace
	c := &teammate.Config{Record: record, ModelName: model, NoImages: noImages, Extra: foreignTools(s.config.Tools),
		ServerTools: serverTools(m.mcp, noImages), Services: teammate.Services{Overview: m.overview(),
			Team: s.config.Name, Home: w.Paths(), Directory: s.config.Directory, Journal: s.journal,
			Lanes: s.lanes, Lander: s.lander, Launcher: m.launcher,
			Environ: s.environ, CommandLimits: s.config.Sandbox.limitsBy(m.confinedBy), Secrets: s.secrets, Log: s.log,
			Spawned: func() { wake(m.wake) }, Collisions: m.collisions, Instructions: s.texts,
			Skills: m.skills,
			Memory: m.memory, Permissions: m.permissions, Granted: m.granted, Hooks: s.hooks,
			ReadyLane: m.readyLane, CheckModel: m.models.check,
			GitState: func(ctx context.Context) string { return describeCheckout(ctx, s.repository, s.target()) },
			LandedFiles: func(ctx context.Context, commit string) ([]string, error) {
				return s.repository.LandedFiles(ctx, commit)
			}}}
	if m.phases != nil {
		c.Phases = m.phases
	}
	return c
}

func (m *members) new(record muster.Member) (*teammate.Member, error) {
	team, stored := &m.site.config, record
	l, role := team.Limits, team.role(record.Role)
	l.MaxTokens, l.IdleTimeout = cmp.Or(role.MaxTokens, l.MaxTokens), max(l.IdleTimeout, 0)
	m.models.noteRole(record.Name, role)
	record.Model = team.modelOf(record)
	noImages := team.NoImages != nil && team.NoImages(team.nameOf(record.Model))
	c := m.configOf(stored, cmp.Or(record.Model, team.ModelName), noImages)
	if team.Window != nil {
		c.Window, c.ReplyTokens = team.Window(team.nameOf(record.Model))
	}
	c.OwnModel = record.Model != "" && record.Model != team.ModelName
	c.Limits = l
	c.Model = func(now func() (muster.TaskID, int), onWait func(time.Time, error)) (llm.Model, error) {
		return m.models.of(record, role, now, onWait)
	}
	c.Subagent = func(kind string, now func() (muster.TaskID, int), onWait func(time.Time, error)) (
		teammate.Subagent, error,
	) {
		return m.models.subagent(record, kind, now, onWait)
	}
	c.Emit = func(e loop.Event) {
		if p, ok := e.(loop.ToolProgress); ok { // all else has passed the model or the tool
			p.Text = m.site.secrets.String(p.Text)
			e = p
		}
		m.site.publish(TurnEvent{Member: record.Name, Event: e}, record.Name, e)
	}
	return teammate.New(*c)
}

// overview returns what tells how the team stands.
func (m *members) overview() teammate.Overview {
	s := m.site
	return teammate.Overview{Store: s.config.Store, Board: s.board, Post: s.post, Roster: s.roster,
		Requests: s.requests, Run: s.runs.Get, Roles: m.roles, Patient: s.config.Limits.IdleTimeout < 0, Talk: m.talk}
}

// progress returns how the team stands.
func (m *members) progress(ctx context.Context) (teammate.TeamProgress, error) {
	o := m.overview()
	return o.Progress(ctx)
}

// leadEnd returns how a run ended whose lead has shut down.
func (m *members) leadEnd(ctx context.Context) (teammate.End, error) {
	return m.configOf(muster.Member{}, "", false).LeadEnd(ctx)
}

// remembered returns what returns what is remembered of the repository, and what the user has all teams know. Members
// ask at each call of a tool, so it looks once: when the first one asks, the repository has its mark.
func (m *members) remembered(ctx context.Context) func() (repository, user memory.Dir) {
	ctx = context.WithoutCancel(ctx)
	return sync.OnceValues(func() (repository, user memory.Dir) {
		repository, err := workspace.MemoryOf(m.site.workspace)
		logDropped(ctx, m.site.log, "looking for what is remembered", err)
		return repository, workspace.UserMemory(m.site.workspace, m.site.config.UserDir)
	})
}

// laneReadier returns what fills the submodules of a fresh lane, puts the user's local files and the kept result of the
// set-up into it, and says to the member how that stands; nil: there is no git.
func (m *members) laneReadier() func(context.Context, muster.Lane) string {
	site, c := m.site, &m.site.config
	lanes, isGit := site.lanes.(*worktree.Lanes)
	if !isGit {
		return nil
	}
	hasSetup := c.Setup != "" && site.setups != nil
	// What is left out is the same in all lanes, so people are told once.
	var told sync.Once
	setUp := func(ctx context.Context, lane muster.Lane) string {
		s, err := site.setups.Ready(ctx, setup.Job{Dir: lane.Path, Commit: lane.Base, Command: c.Setup,
			Patterns: c.SetupFiles, Environ: site.config.checkEnviron(),
			Launch: site.workspace.Launcher, Local: site.local.Hash()})
		logDropped(ctx, site.log, "setting a lane up", err)
		if len(s.Left) > 0 {
			told.Do(func() {
				left := strings.Join(s.Left[:min(len(s.Left), 3)], ", ")
				site.note(ctx, "", "the set-up makes "+left+", which git does not ignore: it is not put into lanes")
			})
		}
		switch {
		case s.IsReady:
			return "Set up already, by: " + c.Setup
		case s.IsUsed:
			return ""
		}
		return "Not set up yet. If you need it, run: " + c.Setup
	}
	return func(ctx context.Context, lane muster.Lane) string {
		said := m.fillSubmodules(ctx, lanes, lane)
		if hasSetup { // before the local files: it is put only where nothing is in its way
			said += "\n" + setUp(ctx, lane)
		}
		return strings.Trim(said+"\n"+site.copyLocalFiles(ctx, lane), "\n")
	}
}

// fillSubmodules fills the submodules of a fresh lane, and names those that stay empty.
func (m *members) fillSubmodules(ctx context.Context, lanes *worktree.Lanes, lane muster.Lane) string {
	repo, isGit := m.site.repository.(gitRepository)
	if !isGit || durable.IsMissing(filepath.Join(lane.Path, ".gitmodules")) {
		return ""
	}
	place, _, err := worktree.PlaceAt(ctx, lanes, lane.Path)
	var empty []string
	if err == nil {
		empty, err = setup.FillSubmodules(ctx, m.launcher, repo.Repo, proc.Spec{Dir: lane.Path,
			Env: m.site.environ}, place.GitDir())
	}
	logDropped(ctx, m.site.log, "filling the submodules of a lane", err)
	if len(empty) == 0 {
		return ""
	}
	return "These submodules are empty here, because the user's checkout does not have them: " + text.List(empty, 5)
}
