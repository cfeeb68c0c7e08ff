package recording

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/llm"
)

// errOver ends the replay of a run that was cut off, where its recording ends.
var errOver = errors.New("the recording ends here: its run was interrupted")

// IsOver reports whether err says that a recording of a run that was cut off has been played to its end.
func IsOver(err error) bool { return errors.Is(err, errOver) }

// Divergence is the first place where a replay is not what was recorded. It is an error.
type Divergence struct {
	Member   muster.Name `json:"member,omitempty"`
	Turn     int         `json:"turn,omitempty"` // 0 where it is no request that differs
	What     string      `json:"what"`           // where in the request, or what was to happen
	Recorded string      `json:"recorded"`       // the whole text
	Now      string      `json:"now"`            // in its place
	At       int         `json:"at"`             // where Recorded begins to differ, in bytes
	AtNow    int         `json:"at_now"`
}

// Error says where it is.
func (d *Divergence) Error() string {
	if d.Turn == 0 {
		return fmt.Sprintf("the replay differs from the recording: %s", d.What)
	}
	return fmt.Sprintf("the replay differs from the recording in turn %d of %s, %s", d.Turn, d.Member, d.What)
}

// Options say how a recording is played.
type Options struct {
	// Speed is how many times as fast as recorded the models answer; 0: at once.
	Speed float64
	// GoOn takes the recorded replies after a divergence too.
	GoOn bool
	// Next is called before each call of a model, one at a time, and waits until it may be answered; nil: at once.
	Next func(ctx context.Context, c *Call) error
	// Stop ends the run, with errOver or a *Divergence.
	Stop func(error)
}

// Player plays a recording: its models say what they have said, and its steps are taken in the same order. It is safe
// for concurrent use.
type Player struct {
	recording *Recording
	options   Options
	turns     *Turns
	talks     map[string][]*Call
	asking    sync.Mutex // held while Next is called
	isAsking  atomic.Bool
	overAt    atomic.Pointer[time.Time] // when the last step of a run that was cut off was over

	mu     sync.Mutex
	match  *matcher
	played map[string]int    // calls, by conversation
	subs   map[string]string // conversations of subagents, by their first message in the replay
	total  int
	first  *Divergence
}

// Play returns a player for a recording.
func Play(r *Recording, o Options) *Player {
	p := &Player{recording: r, options: o, talks: map[string][]*Call{}, played: map[string]int{},
		subs: map[string]string{}, match: newMatcher("", "")}
	for _, c := range r.Calls {
		key := talkKey(c.Member, c.Of)
		p.talks[key] = append(p.talks[key], c)
	}
	var ended func()
	if r.End == nil {
		ended = func() { p.overAt.CompareAndSwap(nil, new(time.Now())); p.stopIfOver(false) }
	}
	p.turns = playTurns(r.Steps, ended)
	return p
}

// talkKey names a conversation: a member's own, or one of a subagent of it.
func talkKey(member muster.Name, of string) string {
	return strings.TrimSpace(string(member) + " " + of)
}

// Begin is told where the run is played.
func (p *Player) Begin(run muster.Run, root string, _ []muster.Task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match = newMatcher(p.recording.Root, root)
	p.match.belong(p.recording.Run.Base, run.Base)
	return nil
}

// Turns returns what keeps the steps in their order.
func (p *Player) Turns() *Turns { return p.turns }

// Played returns how many calls were played, of how many, and the first divergence.
func (p *Player) Played() (n, of int, first *Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total, len(p.recording.Calls), p.first
}

// Model returns a model that says what was recorded. It never asks m.
func (p *Player) Model(member muster.Name, _ llm.Model) llm.Model { return playingModel{p, member} }

// playingModel is the model of a member that says what was recorded.
type playingModel struct {
	*Player
	member muster.Name
}

// Reply compares the request with the recorded one, and returns what that came to.
func (m playingModel) Reply(ctx context.Context, q llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	c, d := m.take(m.member, q)
	if d != nil {
		m.diverge(d)
		if !m.options.GoOn || c == nil {
			<-ctx.Done()
			return llm.Reply{}, context.Cause(ctx)
		}
	}
	if c == nil || c.Error != nil && c.Error.Kind == cancelled { // the run is about to end, or the member is
		<-ctx.Done()
		return llm.Reply{}, context.Cause(ctx)
	}
	emit(llm.Delta{})
	if err := m.await(ctx, c); err != nil {
		return llm.Reply{}, err
	}
	defer m.stopIfOver(false)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total++
	if c.Error != nil {
		return llm.Reply{}, &llm.Error{Kind: c.Error.Kind, Err: errors.New(c.Error.Text)}
	}
	return m.match.reply(*c.Reply), nil
}

// await waits until a call may be answered.
func (p *Player) await(ctx context.Context, c *Call) error {
	if p.options.Speed > 0 {
		if err := clock.Sleep(ctx, time.Duration(c.Seconds/p.options.Speed*float64(time.Second))); err != nil {
			return context.Cause(ctx)
		}
	}
	if p.options.Next == nil {
		return nil
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	p.isAsking.Store(true)
	defer p.isAsking.Store(false)
	return p.options.Next(ctx, c)
}

// take returns the call that was recorded in the place of a request, and where the two differ. The call is nil when
// there is none: a run that was cut off may have had one that nobody has recorded.
func (p *Player) take(member muster.Name, q llm.Request) (*Call, *Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.keyOf(member, q)
	n, all := p.played[key], p.talks[key]
	if n == len(all) {
		if p.recording.End == nil {
			return nil, nil
		}
		return nil, &Divergence{Member: member, Turn: n + 1, What: "which the recording does not have",
			Now: lastText(q.Messages)}
	}
	c := all[n]
	p.played[key]++
	if c.Error != nil && c.Error.Kind == cancelled { // nobody waits for its answer
		p.total++
	}
	where, d := p.compare(c, q)
	if d == nil {
		return c, nil
	}
	return c, &Divergence{Member: member, Turn: c.Turn, What: strings.TrimPrefix(c.Of+", "+where, ", "),
		Recorded: d.recorded, Now: d.now, At: d.at, AtNow: d.atNow}
}

// stopIfOver ends the replay of a run that was cut off when its last step and its last call were played. Calls that
// nobody makes are not waited for with gaveUp.
func (p *Player) stopIfOver(gaveUp bool) {
	if p.overAt.Load() == nil {
		return
	}
	if n, of, _ := p.Played(); n == of || gaveUp {
		p.options.Stop(errOver)
	}
}

// keyOf returns the conversation that a request belongs to. Those of subagents may run side by side, in any order, so
// one that begins is found by what it is told.
func (p *Player) keyOf(member muster.Name, q llm.Request) string {
	if !isSub(q) || len(q.Messages) == 0 {
		return talkKey(member, "")
	}
	first := string(member) + "\x00" + strings.Join(piecesAt(q.Messages, 0), "\x00")
	if key, ok := p.subs[first]; ok {
		return key
	}
	best := ""
	for i := 1; ; i++ {
		key := talkKey(member, fmt.Sprintf("subagent %d", i))
		all := p.talks[key]
		if len(all) == 0 {
			break
		}
		if p.played[key] > 0 {
			continue
		}
		if _, d := p.match.messages(all[0].Messages, q.Messages); d == nil {
			best = key
			break
		}
		if best == "" {
			best = key
		}
	}
	p.subs[first] = best
	return best
}

// compare says where a request differs from the recorded one.
func (p *Player) compare(c *Call, q llm.Request) (where string, d *difference) {
	if now := prefixOf(q); now.ID != c.Prefix {
		was := p.recording.Prefixes[c.Prefix]
		d = p.match.compare(strings.Join(was.System, "\n"), strings.Join(now.System, "\n"))
		if where = "the system prompt"; d != nil {
			return where, d
		}
		var a, b []string
		for i := range max(len(was.Tools), len(now.Tools)) {
			a, b = append(a, toolText(was.Tools, i)), append(b, toolText(now.Tools, i))
		}
		if d = p.match.compare(strings.Join(a, "\n"), strings.Join(b, "\n")); d != nil {
			return "the tools", d
		}
	}
	return p.match.messages(c.Messages, q.Messages[min(c.Kept, len(q.Messages)):])
}

// toolText returns what a model is told of a tool.
func toolText(tools []llm.Spec, i int) string {
	if i >= len(tools) {
		return ""
	}
	return tools[i].Name + ": " + tools[i].Description + " " + string(tools[i].Schema)
}

// lastText returns the last message as a text.
func lastText(messages []llm.Message) string {
	return strings.Join(piecesAt(messages, len(messages)-1), "\n")
}

// diverge notes a divergence, and stops the run unless it is to go on.
func (p *Player) diverge(d *Divergence) {
	p.mu.Lock()
	isFirst := p.first == nil
	if isFirst {
		p.first = d
	}
	p.mu.Unlock()
	if isFirst && !p.options.GoOn {
		p.turns.fail(d)
		p.options.Stop(d)
	}
}

// stallPatience is how long nobody may take a turn, beside several times as long as it took when it was recorded.
const stallPatience = 30 * time.Second

// Watch reports it as a divergence when whose turn it is does not come. It returns when ctx ends.
func (p *Player) Watch(ctx context.Context) {
	for clock.Sleep(ctx, time.Second) == nil {
		if at := p.overAt.Load(); at != nil && time.Since(*at) > stallPatience {
			p.stopIfOver(true)
		}
		who, waited, recorded := p.turns.awaited()
		slow := 5.0
		if p.options.Speed > 0 {
			slow = max(slow, 2/p.options.Speed)
		}
		if who == "" || p.isAsking.Load() || waited < stallPatience+time.Duration(slow*float64(recorded)) {
			continue
		}
		member, _, _ := strings.Cut(who, " ")
		d := &Divergence{Member: muster.Name(member),
			What: fmt.Sprintf("for %v nobody has done what %s did next", waited.Round(time.Second), member)}
		p.diverge(d)
		p.turns.fail(d)
		p.options.Stop(d)
		return
	}
}
