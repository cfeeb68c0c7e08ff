package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
)

type holder interface {
	CurrentTask() (muster.Task, bool)
}

// diary tells others what the member does: the journal, the lead, and people who read the log.
type diary struct {
	name    muster.Name
	journal *journal.Journal
	post    *mailbox.Mail
	log     *slog.Logger
	tasks   holder
}

// event writes what happened to the journal. The journal drives nothing: a failure to write it does not fail the turn.
func (d *diary) event(ctx context.Context, kind string, fields map[string]any) {
	t, _ := d.tasks.CurrentTask()
	e := muster.Event{Kind: kind, Member: d.name, Task: t.ID, Fields: fields}
	_ = d.journal.Emit(context.WithoutCancel(ctx), e)
}

// note tells the user something about the run. task is 0 where it concerns none.
func (d *diary) note(ctx context.Context, task muster.TaskID, text string) error {
	return d.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Task: task, Fields: map[string]any{"text": text}})
}

// told notes for the user something that the member has met.
func (d *diary) told(ctx context.Context, text string) {
	d.event(ctx, journal.RunNote, map[string]any{"text": text})
}

// replied writes an event with what a reply has cost. more is what else is known of the turn.
func (d *diary) replied(ctx context.Context, r llm.Reply, more map[string]any) {
	fields := map[string]any{"stop": r.Stop, "model": r.Model, "input": r.Usage.Input, "output": r.Usage.Output,
		"cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite, "cache_write_long": r.Usage.CacheWriteLong}
	if r.Dollars == nil {
		fields["dollars"] = nil // the price is not known
	} else if *r.Dollars > 0 {
		fields["dollars"] = *r.Dollars
	}
	maps.Copy(fields, more)
	d.event(ctx, journal.TurnEnded, fields)
}

// tellLead mails the lead. Errors come from the runtime, all else from the member.
func (d *diary) tellLead(ctx context.Context, kind muster.MessageType, task muster.TaskID, text string) error {
	from := d.name
	if kind == muster.MailError {
		from = muster.System
	}
	_, err := d.post.Send(ctx, muster.Message{Type: kind, From: from, To: muster.Lead, TaskID: task, Content: text})
	return err
}

// dropped logs an error that does not stop the member, unless it only says that the member was cancelled.
func (d *diary) dropped(ctx context.Context, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	d.log.WarnContext(ctx, "error dropped", "what", what, "err", err)
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// guarded is a value that several goroutines read and change: that of Live, and those of the tools.
type guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// get returns a copy of the value, to decide on. What the copy points to is never changed, only replaced.
func (g *guarded[T]) get() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

func (g *guarded[T]) change(f func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.value)
}

func agentID(name, team muster.Name) string { return string(name) + "@" + string(team) }

const askedField = "asked" // the field of a member's record that names whom it has asked something and waits for

func askedOf(r muster.Member) []muster.Name {
	var names []muster.Name
	_ = json.Unmarshal(r.Extra[askedField], &names) // absent, or written by another program: nobody
	return sortedNames(names)
}

func sortedNames(names []muster.Name) []muster.Name {
	slices.Sort(names)
	return slices.Compact(names)
}

func setAsked(r *muster.Member, names []muster.Name) {
	if len(names) == 0 {
		delete(r.Extra, askedField)
		return
	}
	line, _ := json.Marshal(names) // a list of names always encodes
	if r.Extra == nil {
		r.Extra = muster.Extra{}
	}
	r.Extra[askedField] = line
}

// claimKey is unique for a claim. It is noted in the transcript with the task's text.
func claimKey(t muster.Task) muster.MessageID {
	return muster.MessageID(fmt.Sprintf("%s%d-%d", claimPrefix, t.ID, t.Fence))
}

const claimPrefix = "claim-"

const maxQuote = 4000

func textOf(msg llm.Message) string {
	var b strings.Builder
	for _, p := range msg.Parts {
		if t, ok := p.(llm.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// isDecided reports whether a request is known to be over.
func isDecided(ctx context.Context, q *requests.Requests, id muster.RequestID) bool {
	r, err := q.Get(ctx, id)
	return err == nil && requests.Final(r)
}

// Gist is a call in a few words, for people: its most telling value.
func Gist(c llm.Call) string {
	var in map[string]any
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "path", "pattern", "subject", "to", "name", "task_id", "prompt"} {
		if v, ok := in[key]; ok && v != nil && v != "" {
			line, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			return text.OneLine(line)
		}
	}
	return ""
}

// namedPaths returns the paths that a call names in its fields, whatever the model calls them, or in a patch.
func namedPaths(c llm.Call) (paths []string) {
	var in map[string]any
	// Input that does not fit names no path that the tool has taken.
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(in)) {
		text, isText := in[field].(string)
		name := strings.ToLower(field)
		switch {
		case !isText || text == "":
		case c.Name == "apply_patch":
			paths = append(paths, code.PatchPaths(text)...)
		case strings.Contains(name, "path"), strings.Contains(name, "file"), strings.Contains(name, "dir"):
			paths = append(paths, text)
		}
	}
	return paths
}

func writesFiles(tool string) bool {
	return slices.Contains([]string{"write_file", "edit_file", "apply_patch"}, tool)
}

func touchedFiles(call llm.Call) (reads, writes []string) {
	switch call = code.AsPatch(call); {
	case call.Name == "read_file":
		return namedPaths(call), nil
	case writesFiles(call.Name):
		return nil, namedPaths(call)
	}
	return nil, nil
}

// Limits are the settings of a member's life. IdleTimeout of zero means never.
type Limits = config.Limits

// Subagent is the model of a kind of subagents, and what is known of it, as Config has it of the member's.
type Subagent struct {
	Model     llm.Model
	Name      string
	NoImages  bool
	MaxTokens int
}

// Lanes are the worktrees in which members work: worktree.Lanes, whose methods say what each does.
type Lanes interface {
	teamtools.Lanes
	Workdir(ctx context.Context, name muster.Name) (dir string, err error)
	Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error)
	ScratchChanges(ctx context.Context, member muster.Name, tips []string) (files []string, err error)
	Unlanded(ctx context.Context, tips []string, archived []worktree.Archived) ([]worktree.Leftover, error)
	Changed(ctx context.Context, name muster.Name) (bool, error)
	Fingerprint(ctx context.Context, name muster.Name) (string, error)
	Ignored(ctx context.Context, name muster.Name) ([]string, error)
	Bind(ctx context.Context, name muster.Name, task muster.TaskID) error
	Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error
	Release(ctx context.Context, name muster.Name) error
	Archive(ctx context.Context, name muster.Name) (ref string, err error)
	ArchiveCompleted(ctx context.Context, t muster.Task) (ref string, err error)
	Recover(ctx context.Context) error
}

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	LandWith(
		ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, owner landing.Owner,
	) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// Talk is a conversation of the user with the lead. While it is open the run does not end by itself: the lead listens.
type Talk interface {
	// Closed returns a channel that is closed when the user says no more; the run then ends like any other.
	Closed() <-chan struct{}
	// Turn is called when the lead's turn begins. Its context ends with muster.CauseTurn when the user stops the turn.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is called for each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest gives the prompt to the user after the lead's turn. done says that nothing is open and nobody is at work.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead in another one.
const TalkLease = "talk"

func isOpen(t Talk) bool {
	if t == nil {
		return false
	}
	select {
	case <-t.Closed():
		return false
	default:
		return true
	}
}

// profile is the stable prefix of every request. It never changes while the member works.
type profile struct {
	system  []string
	tools   []llm.Tool             // decorated; outermost first: the audit, the output limit, the plan gate, the tool
	specs   []llm.Spec             // of tools, in the same order
	size    int                    // tokens of system and specs, as they are estimated
	bare    []llm.Tool             // tools without their decorators
	effects map[string]toolEffects // of those tools that have some, by their names
}

type toolEffects struct {
	polls   bool // nothing: the tool is asked again and again
	records bool // the board, mail, requests, the team or a lane
	files   bool // files of the lane
}
