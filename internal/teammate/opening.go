package teammate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/compact"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/skills"
	"muster/internal/text"
	"muster/internal/transcript"
	"muster/llm"
)

// maxOldMail is how many bytes of the mail that was read before are shown again in a conversation that starts afresh.
const maxOldMail = 8 << 10

// The limits of what a member reads of its earlier work.
const (
	fullTasks   = 3   // of the last tasks: what was landed, and what was reported
	namedTasks  = 5   // of those before: a line
	maxReported = 500 // bytes of what was reported of a task
	maxFiles    = 12  // of a task
	maxRoster   = 30  // members
)

// opening returns the first message of a conversation that was made shorter, as texts: the summary, and what the
// runtime knows by itself, which no summary can get wrong. The opening words stand here too, because a transcript may
// lose what was before. marks note what is said with it.
func (c *compaction) opening(ctx context.Context, summary string, b compact.Budget) (
	texts []string, marks []muster.MessageID, err error) {
	mark, err := c.conversation.openingMark(ctx)
	if err != nil {
		return nil, nil, err
	}
	marks = []muster.MessageID{mark}
	about, err := c.about.texts(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	// What all members share stays the first part: the provider has cached it.
	texts = append(slices.Insert(about, 1, prompt.Compressed(summary)), c.conversation.identity(), c.about.place())
	if c.isLead() {
		p, err := c.Progress(ctx)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, c.prompt(), tasksOnBoard(slices.Concat(p.Open, p.NeedsAttention)))
	} else {
		work, err := c.earlierWork(ctx)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, work)
	}
	team, err := c.team(ctx)
	if err != nil {
		return nil, nil, err
	}
	texts = append(texts, team)
	if t, ok := c.claims.CurrentTask(); ok {
		task, key, err := c.claims.taskPrompt(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		plan, err := c.plans.state(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		texts, marks = append(texts, task, plan), append(marks, key)
	} else if !c.isLead() {
		texts = append(texts, c.prompt())
	}
	if list := c.todo.Text(); list != "" {
		texts = append(texts, prompt.Reminder("Your todo list:\n%s", text.EscapeTags(list)))
	}
	mail, err := c.conversation.oldMail(ctx, min(maxOldMail, b.Opening))
	return append(texts, mail), marks, err
}

// lasting returns the skills that the model has read in messages, which stay behind a summary of them. When the
// conversation was compressed before, they are in its first message.
func lasting(tools []llm.Spec, messages []llm.Message) (texts []string) {
	lasts := func(calls []llm.Call, i int) bool {
		return i < len(calls) && slices.ContainsFunc(tools, func(s llm.Spec) bool {
			return s.Lasting && s.Name == calls[i].Name
		})
	}
	for i, m := range messages {
		if m.Role != llm.User {
			continue
		}
		calls := messages[max(i-1, 0)].Calls()
		for j, p := range m.Parts {
			text := ""
			switch p := p.(type) {
			case llm.Text:
				text = p.Text
			case llm.Result:
				if lasts(calls, j) {
					text = p.Text()
				}
			}
			if strings.HasPrefix(text, skills.Mark) && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// tasksOnBoard lists tasks for the lead, which has forgotten what it made.
func tasksOnBoard(tasks []muster.Task) string {
	if len(tasks) == 0 {
		return ""
	}
	text := "These tasks are on the board:"
	for _, t := range tasks {
		text += "\n" + prompt.TaskLine(t)
	}
	return text
}

func (c *compaction) team(ctx context.Context) (string, error) {
	all, err := c.Roster.List(ctx)
	if err != nil {
		return "", err
	}
	members, n := "", 0
	for _, m := range all {
		if m.Name == c.name() || m.Status == muster.Shutdown {
			continue
		}
		if n++; n > maxRoster {
			continue
		}
		members += fmt.Sprintf("\n%s (%s): %s", m.Name, text.EscapeTags(m.Role), m.Status)
	}
	if n > maxRoster {
		members += fmt.Sprintf("\nand %d more", n-maxRoster)
	}
	if members == "" {
		return "", nil
	}
	return "The other members of the team:" + members, nil
}

// earlierWork tells what the member has completed before, from the board: of the last tasks the result, the commit and
// its files; of some before them a line; of all others how many they are. So it stays short however many there are.
func (c *compaction) earlierWork(ctx context.Context) (string, error) {
	all, err := c.Board.List(ctx)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t muster.Task) bool {
		return t.Status != muster.Completed || t.CompletedBy != c.name()
	})
	slices.SortStableFunc(all, func(a, b muster.Task) int {
		return -cmp.Or(cmp.Compare(a.UpdatedAt, b.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	var b strings.Builder
	for i, t := range all {
		if i == fullTasks+namedTasks {
			fmt.Fprintf(&b, "\nand %d before them", len(all)-i)
			break
		}
		b.WriteString("\n" + prompt.TaskLine(t))
		if i < fullTasks {
			b.WriteString(c.result(ctx, t))
		}
	}
	if b.Len() == 0 {
		return "", nil
	}
	return "You have completed these tasks, the last one first:" + b.String(), nil
}

func (c *compaction) result(ctx context.Context, t muster.Task) (came string) {
	if t.Landed != nil && c.LandedFiles != nil {
		files, err := c.LandedFiles(ctx, t.Landed.Commit)
		c.diary.dropped(ctx, "reading the files of a landing", err)
		if n := len(files) - maxFiles; n > 0 {
			files = append(files[:maxFiles:maxFiles], fmt.Sprintf("and %d more", n))
		}
		if len(files) > 0 {
			came = "\n  files: " + text.EscapeTags(strings.Join(files, ", "))
		}
	}
	if t.Result != "" {
		came += "\n  you reported: " + text.EscapeTags(text.CutBytes(t.Result, maxReported))
	}
	return came
}

// oldMail shows again the last mail that the conversation had, as much as fits. The newest is cut if it must be: it may
// be the instruction that the member works on.
func (v *conversation) oldMail(ctx context.Context, most int) (string, error) {
	last, err := transcript.LastDeliveredSince(ctx, v.Store.Log(), v.name(), clearedMark)
	if err != nil {
		return "", err
	}
	for ; len(last) > 0; last = last[1:] {
		if len(last) == 1 {
			last[0].Content = compact.Shorten(last[0].Content, most/4)
		}
		if text := mailbox.Render(last, 0); len(text) <= most || len(last) == 1 {
			return prompt.Reminder("This is the last mail that you have read. You may have answered it already.") +
				"\n" + text, nil
		}
	}
	return "", nil
}

// currentClaim returns the key of the claim whose work the conversation holds, "" for none.
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
// one by a tool. The newest messages stay: they have the claim's result, and what was said with it. A lead, whose
// conversation is about all tasks, keeps them.
func (c *compaction) leaveOldTask(ctx context.Context, p *profile, messages []llm.Message) error {
	t, ok := c.claims.CurrentTask()
	if !ok || c.isLead() || claimKey(t) == c.currentClaim() {
		return nil
	}
	// A member that was killed just after it had claimed a task finishes its phase first, and is then told of the task.
	if !c.claims.isPresented(c.claims.held.get()) {
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

// beginTask says the text of a task that the member begins. In a conversation that holds the work on an earlier task it
// takes the place of all that was said, so that the member's fiftieth task costs no more than its second.
func (c *compaction) beginTask(ctx context.Context, text string, key muster.MessageID) error {
	if earlier := c.currentClaim(); earlier == "" || earlier == key {
		return c.conversation.say(ctx, []muster.MessageID{key}, text)
	}
	p := c.toolbox.get()
	return c.replace(ctx, p, c.budget(p, 0), prompt.NewTask, nil, "another task was claimed")
}
