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
	"muster/internal/prompt"
	"muster/internal/roster"
	"muster/internal/skills"
	"muster/internal/text"
	"muster/internal/tool/agent"
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

// opening writes the beginning of a conversation that was made shorter.
type opening struct {
	conversation *conversation
	about        *surroundings
	board        *board.Board
	roster       *roster.Roster
	todo         *agent.Todo
	claims       work
	plans        planState
	team         teamTasks
	landedFiles  func(ctx context.Context, commit string) ([]string, error)
	diary        *diary
}

// What the opening uses of the other parts of the member.
type (
	work interface {
		holder
		hasReadTask() bool
		taskPrompt(context.Context, muster.Task) (text string, key muster.MessageID, err error)
	}
	planState interface {
		state(context.Context, muster.Task) (string, error)
	}
	teamTasks interface {
		tasksForLead(context.Context) ([]muster.Task, error)
	}
)

// texts returns the first message: the summary, and what the runtime knows by itself, which no summary can get wrong.
// The opening words stand here too, because a transcript may lose what was before. marks note what is said with it.
func (o *opening) texts(ctx context.Context, summary string, b compact.Budget) (
	texts []string, marks []muster.MessageID, err error) {
	mark, err := o.conversation.openingMark(ctx)
	if err != nil {
		return nil, nil, err
	}
	marks = []muster.MessageID{mark}
	about, err := o.about.texts(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	// What all members share stays the first part: the provider has cached it.
	texts = append(slices.Insert(about, 1, prompt.Compressed(summary)), o.conversation.identity(), o.about.place())
	if o.conversation.isLead() {
		tasks, err := o.team.tasksForLead(ctx)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, o.conversation.prompt(), tasksOnBoard(tasks))
	} else {
		work, err := o.earlierWork(ctx)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, work)
	}
	team, err := o.members(ctx)
	if err != nil {
		return nil, nil, err
	}
	texts = append(texts, team)
	if t, ok := o.claims.CurrentTask(); ok {
		task, key, err := o.claims.taskPrompt(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		plan, err := o.plans.state(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		texts, marks = append(texts, task, plan), append(marks, key)
	} else if !o.conversation.isLead() {
		texts = append(texts, o.conversation.prompt())
	}
	if list := o.todo.Text(); list != "" {
		texts = append(texts, prompt.Reminder("Your todo list:\n%s", text.EscapeTags(list)))
	}
	mail, err := o.conversation.oldMail(ctx, min(maxOldMail, b.Opening))
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

func (o *opening) members(ctx context.Context) (string, error) {
	all, err := o.roster.List(ctx)
	if err != nil {
		return "", err
	}
	members, n := "", 0
	for _, m := range all {
		if m.Name == o.conversation.record.Name || m.Status == muster.Shutdown {
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
func (o *opening) earlierWork(ctx context.Context) (string, error) {
	all, err := o.board.List(ctx)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t muster.Task) bool {
		return t.Status != muster.Completed || t.CompletedBy != o.conversation.record.Name
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
			b.WriteString(o.result(ctx, t))
		}
	}
	if b.Len() == 0 {
		return "", nil
	}
	return "You have completed these tasks, the last one first:" + b.String(), nil
}

func (o *opening) result(ctx context.Context, t muster.Task) (came string) {
	if t.Landed != nil && o.landedFiles != nil {
		files, err := o.landedFiles(ctx, t.Landed.Commit)
		o.diary.dropped(ctx, "reading the files of a landing", err)
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
