package teammate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/compact"
	"muster/internal/failpoint"
	"muster/internal/prompt"
	"muster/internal/roster"
	"muster/internal/text"
	"muster/internal/tool/agent"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/tool"
)

// compaction keeps the conversation within the window of the member's model. Before a request it clears older results,
// and near the window's end a summary by the model takes the place of all but the newest messages, with what the
// runtime knows by itself behind it. All is written to the transcript before it is sent, so that a restarted member
// sends the same bytes. Its methods are for the goroutine of Live.
type compaction struct {
	conversation *conversation
	about        *surroundings
	model        llm.Model
	window       int    // of the model; lowered when its server takes less
	replyTokens  int    // the most that a reply may take; 0 where it is not known
	record       string // the path of the transcript, where the store is a directory
	todo         *agent.Todo
	tools        prefix
	claims       work
	planState    func(context.Context, muster.Task) (string, error)
	leadTasks    func(context.Context) ([]muster.Task, error) // that are open or need attention
	board        *board.Board
	roster       *roster.Roster
	landedFiles  func(ctx context.Context, commit string) ([]string, error)
	diary        *diary
	status       status
	phase        changes

	gauge compact.Gauge
	sent  int              // the estimate of the last request
	task  muster.MessageID // the claim whose work the conversation holds; see currentClaim
	wish  guarded[*string] // what the model asked for with its tool, nil for nothing; met before the next request
}

// What the compaction uses of the toolbox.
type (
	prefix interface {
		get(context.Context) *profile
		forget()
	}
	work interface {
		holder
		hasReadTask() bool
		taskPrompt(context.Context, muster.Task) (text string, key muster.MessageID, err error)
	}
)

// UsualWindow is the window of a model of which none is known. Servers with less say so, and it is lowered.
const UsualWindow = 128_000

const minWindow = 16_000

const maxRestarts = 3 // in a row, because the server refused the conversation

const newestRound = 2 // how many messages a round of calls has: those that stay where nothing else is to be kept

type compactInput struct {
	Focus string `json:"focus,omitempty" jsonschema:"what the summary must keep above all"`
}

// tool returns the tool by which the model asks for a shorter conversation.
func (c *compaction) tool() llm.Tool {
	return tool.Func("compact", prompt.Tool("compact"), func(_ context.Context, in compactInput) (string, error) {
		c.wish.change(func(w **string) { *w = &in.Focus })
		return "Your conversation is compressed before your next step: you are asked for the summary then.", nil
	})
}

func (c *compaction) do(ctx context.Context, m muster.Message) error {
	if m.Type == muster.MailClear {
		return c.startOver(ctx, m.ID)
	}
	return c.atOnce(ctx, m.Content)
}

// clearedMark is noted where the user had the conversation begin anew. Mail before it is not shown again.
const clearedMark muster.MessageID = "cleared"

func (c *compaction) restore() {
	c.todo.Restore(c.conversation.script.State(), c.conversation.script.Messages())
}

// startOver begins a new conversation, with what the runtime knows and nothing of what was said. No call may be
// unanswered. The mail that asks for it is noted in the same entry, so that it clears nothing twice.
func (c *compaction) startOver(ctx context.Context, asked muster.MessageID) error {
	p := c.tools.get(ctx)
	b := c.budget(p, 0)
	const about = "The user has begun a new conversation with you. What was said before is gone."
	texts, marks, err := c.opening(ctx, opening{summary: about, withoutMail: true}, b)
	if err != nil {
		return err
	}
	begins := compact.Behind(compact.Fit(texts, b.Opening), nil)
	return c.store(ctx, p, begins, append(marks, asked, clearedMark), "the user began a new conversation")
}

func (c *compaction) atOnce(ctx context.Context, focus string) error {
	p := c.tools.get(ctx)
	done, err := c.compress(ctx, p, c.budget(p, 0), c.conversation.script.Messages(), newestRound,
		"the user asked for it", focus)
	if err == nil && !done {
		c.tell(ctx, "unchanged", "there is nothing to leave out", 0, 0)
	}
	return err
}

func (c *compaction) budget(p *profile, harder int) compact.Budget {
	return compact.NewBudget(c.window, min(c.replyTokens, c.window/4), p.size, harder)
}

func (c *compaction) fit(ctx context.Context, p *profile) ([]llm.Message, error) {
	messages := c.conversation.script.Messages()
	if err := c.leaveOldTask(ctx, p, messages); err != nil {
		return nil, err
	}
	messages = c.conversation.script.Messages()
	if n := len(messages); n == 0 || messages[n-1].Role == llm.Assistant { // nothing comes between a paused reply and
		return messages, nil // what follows it
	}
	if tokens, n := c.conversation.script.Counted(); c.sent == 0 && n > 0 && n <= len(messages) {
		c.gauge.Count(tokens, p.size+compact.Estimate(messages[:n])) // by the process before
	}
	b, size := c.budget(p, 0), p.size+compact.Estimate(messages)
	if changes, saved := c.cleared(p, b, messages, size); len(changes) > 0 {
		if err := c.clear(ctx, changes, size, saved); err != nil {
			return nil, err
		}
		messages, size = c.conversation.script.Messages(), size-saved
	}
	var wish *string
	c.wish.change(func(w **string) { wish, *w = *w, nil })
	if wish != nil || c.gauge.Tokens(size) > b.Limit {
		why, focus, newest := "the window is nearly full", "", len(messages)
		if wish != nil {
			why, focus, newest = "the member asked for it", *wish, newestRound
		}
		if _, err := c.compress(ctx, p, b, messages, newest, why, focus); err != nil {
			return nil, err
		}
		messages = c.conversation.script.Messages()
	}
	c.sent = p.size + compact.Estimate(messages)
	return messages, loop.CheckSize(messages)
}

func (c *compaction) counted(u llm.Usage) { c.gauge.Count(u.Prompt(), c.sent) }

// cleared returns the changes that make older results short, and how many tokens they free; none while there is room.
// In a request above the limit fewer of the newest results stay whole. If even that is not enough, it returns none, so
// that a summary follows. But where calls and words have less than a step, a summary would free little: then all
// results that the model has read are cleared, and if that is not enough, those that it has not read are cut.
func (c *compaction) cleared(p *profile, b compact.Budget, messages []llm.Message, size int) (
	changes []compact.Change, saved int) {
	isAbove := func(saved, limit int) bool { return c.gauge.Tokens(size-saved) > limit }
	if !isAbove(0, b.ClearFrom) {
		return nil, 0
	}
	rules := compact.Rules{Kept: b.Results, Tools: p.specs, Files: touchedFiles}
	for ; rules.Kept >= max(b.Results/4, 1); rules.Kept /= 2 {
		if changes, saved = rules.Clear(messages); saved >= b.Step && !isAbove(saved, b.Limit) {
			return changes, saved
		}
		if !isAbove(0, b.Limit) {
			return nil, 0
		}
	}
	rules.Kept = 0
	changes, saved = rules.Clear(messages)
	if words := compact.Estimate(messages[1:max(1, len(messages)-newestRound)]) - saved; words >= b.Step {
		return nil, 0
	}
	if isAbove(saved, b.Limit) {
		cut, cutSaved := compact.CutNewest(messages, b.Kept)
		changes, saved = append(changes, cut...), saved+cutSaved
	}
	return changes, saved
}

func (c *compaction) clear(ctx context.Context, changes []compact.Change, size, saved int) error {
	if err := c.conversation.script.Clear(ctx, changes); err != nil {
		return err
	}
	failpoint.Hit("teammate.cleared")
	c.tell(ctx, "cleared", "older results were cleared", size, size-saved)
	return nil
}

func (c *compaction) tell(ctx context.Context, how, why string, before, after int) {
	c.diary.event(ctx, journal.ContextCompacted, map[string]any{"how": how, "text": why,
		"before": c.gauge.Tokens(before), "after": c.gauge.Tokens(after)})
	c.phase.noteShorter()
}

// compress puts a summary by the model in the place of all but at most newest messages. If these are all there is, it
// only cuts what is too long in them. It reports whether that made the conversation shorter.
func (c *compaction) compress(ctx context.Context, p *profile, b compact.Budget, messages []llm.Message, newest int,
	why, focus string) (done bool, err error) {
	from := max(0, len(messages)-1-newest)
	tail, before := compact.Tail(messages[from:], b.Kept)
	before += from
	if old := messages[:before]; slices.ContainsFunc(old, func(m llm.Message) bool { return m.Role == llm.Assistant }) {
		summary, err := c.summarize(ctx, p, b, old, focus)
		if err != nil {
			return false, err
		}
		return true, c.replace(ctx, p, b, cmp.Or(summary, withoutSummary(old)), tail, why, lasting(p.specs, old)...)
	}
	if short := slices.Concat(messages[:before], tail); compact.Estimate(short) < compact.Estimate(messages) {
		return true, c.store(ctx, p, short, nil, why)
	}
	return false, nil // there is nothing to leave out
}

// replace begins the conversation anew with what the member must know and stays, and goes on with the tail.
func (c *compaction) replace(ctx context.Context, p *profile, b compact.Budget, summary string, tail []llm.Message,
	why string, loaded ...string) error {
	texts, marks, err := c.opening(ctx, opening{summary: summary, skills: loaded}, b)
	if err != nil {
		return err
	}
	return c.store(ctx, p, compact.Behind(compact.Fit(texts, b.Opening), tail), marks, why)
}

// store writes the shorter conversation. It is one entry, so that a crash leaves the old one or the new one.
func (c *compaction) store(ctx context.Context, p *profile, messages []llm.Message, marks []muster.MessageID,
	why string) error {
	script := c.conversation.script
	before := p.size + compact.Estimate(script.Messages())
	if err := script.Compress(ctx, messages, marks, c.todo.State(), why); err != nil {
		return err
	}
	failpoint.Hit("teammate.compressed")
	c.tools.forget()
	c.task = ""
	c.tell(ctx, "compressed", why, before, p.size+compact.Estimate(script.Messages()))
	return nil
}

// summarize asks the model for a summary of messages. The request begins as all others do, for the provider's cache.
// The summary is "" if the model gives none.
func (c *compaction) summarize(
	ctx context.Context, p *profile, b compact.Budget, old []llm.Message, focus string,
) (string, error) {
	if c.gauge.Tokens(p.size+compact.Estimate(old)) > b.Limit { // it must fit as well
		changes, _ := compact.Rules{Tools: p.specs}.Clear(old)
		old = compact.Apply(old, changes)
		if c.gauge.Tokens(p.size+compact.Estimate(old)) > b.Limit {
			newest, _ := compact.Tail(old, (b.Limit-p.size)/2)
			old = compact.Behind([]string{prompt.Reminder("What was before is left out here.")}, newest)
		}
	}
	for _, again := range []bool{false, true} {
		h := llm.NewHistory(old)
		h.Say(llm.Text{Text: prompt.Summarize(focus, int(float64(b.Summary)*compact.WordsPerToken), again)})
		ask := c.conversation.request(ctx, p, h.Messages())
		ask.Purpose = "summary"
		r, err := c.model.Reply(ctx, ask, func(llm.Delta) {})
		switch kind := llm.KindOf(err); {
		case kind == llm.ContextFull || kind == llm.BadHistory || kind == llm.BadRequest:
			return "", nil
		case err != nil:
			return "", err
		}
		c.status.onModelReply(ctx)
		c.diary.replied(ctx, r, map[string]any{"summary": true})
		text := strings.TrimSpace(textOf(r.Message))
		if text != "" && (r.Stop == llm.StopEnd || r.Stop == llm.StopMax) {
			return compact.Shorten(text, b.Summary), nil
		}
	}
	return "", nil
}

func withoutSummary(old []llm.Message) string {
	var files []string
	words, calls := "", 0
	for _, m := range old {
		if m.Role != llm.Assistant {
			continue
		}
		words = cmp.Or(textOf(m), words)
		for _, call := range m.Calls() {
			_, writes := touchedFiles(call)
			files, calls = append(files, writes...), calls+1
		}
	}
	slices.Sort(files)
	summary := fmt.Sprintf("There is no summary: you gave none. You have made %d calls.", calls)
	if files = slices.Compact(files); len(files) > 0 {
		summary += " They wrote " + strings.Join(files, ", ") + "."
	}
	if words != "" {
		summary += "\nYou said last: " + text.CutBytes(words, maxQuote)
	}
	return summary
}

// afterError makes the conversation shorter because the model's server has refused it. harder counts such errors in a
// row: each time less is kept. From the third on, and if the order of the messages is refused, it begins anew.
func (c *compaction) afterError(ctx context.Context, refused error, harder int) error {
	p := c.tools.get(ctx)
	isFull := llm.KindOf(refused) == llm.ContextFull
	if size := c.gauge.Tokens(c.sent); isFull && size > 0 {
		c.window = min(c.window, max(size, minWindow))
	}
	messages := c.conversation.script.Messages()
	if isFull && harder < maxRestarts && len(messages) > 1 {
		b := c.budget(p, harder)
		// The server may count far more than is estimated, so that all would seem to fit.
		b.Kept = min(b.Kept, compact.Estimate(messages[1:])>>(harder+1))
		done, err := c.compress(ctx, p, b, messages, len(messages), "it no longer fits the window", "")
		if done || err != nil {
			return err
		}
	}
	if isFull {
		return c.replace(ctx, p, c.budget(p, min(harder, maxRestarts-1)),
			"Your conversation had grown too long and starts again here.", nil, "it no longer fits the window")
	}
	return c.replace(ctx, p, c.budget(p, 0), "Your model's server refused the conversation as it was, so it starts "+
		"again here.", nil, "its server refused it")
}

func (c *compaction) currentClaim() muster.MessageID {
	if c.task == "" {
		for _, id := range c.conversation.script.Noted() {
			if strings.HasPrefix(string(id), claimPrefix) {
				c.task = id
			}
		}
	}
	return c.task
}

// leaveOldTask reduces the work on an earlier task to what the runtime knows of it, once the member has claimed another
// by a tool. The newest messages stay: they have the claim's result. A lead keeps all.
func (c *compaction) leaveOldTask(ctx context.Context, p *profile, messages []llm.Message) error {
	t, ok := c.claims.CurrentTask()
	if !ok || c.conversation.isLead() || claimKey(t) == c.currentClaim() {
		return nil
	}
	// A member that was killed just after it had claimed a task finishes its phase first, and is then told of the task.
	if !c.claims.hasReadTask() {
		return nil
	}
	hadTask := c.task != ""
	if hadTask && len(messages) > 3 {
		b := c.budget(p, 0)
		tail, _ := compact.Tail(messages[len(messages)-3:], b.Kept)
		if err := c.replace(ctx, p, b, prompt.NewTask, tail, "another task was claimed"); err != nil {
			return err
		}
	}
	c.task = claimKey(t)
	return nil
}

// beginTask says the text of a task. It replaces the work on an earlier task, so that tasks do not add up.
func (c *compaction) beginTask(ctx context.Context, text string, key muster.MessageID) error {
	if earlier := c.currentClaim(); earlier == "" || earlier == key {
		return c.conversation.say(ctx, []muster.MessageID{key}, text)
	}
	p := c.tools.get(ctx)
	return c.replace(ctx, p, c.budget(p, 0), prompt.NewTask, nil, "another task was claimed")
}
