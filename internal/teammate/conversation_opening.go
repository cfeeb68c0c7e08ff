package teammate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/compact"
	"muster/internal/instructions"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/roles"
	"muster/internal/skills"
	"muster/internal/text"
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
	maxLanded   = 20  // tasks that have landed, for the lead
)

// opening says what a shortened conversation begins with.
type opening struct {
	summary     string
	skills      []string // that the member has loaded
	withoutMail bool     // the old mail belongs to a conversation that the user has ended
}

// opening returns the texts of the first message of a conversation that was made shorter. What stays the same comes
// first, for the provider's cache; the summary, the task, the plan and the todo list come last, next to the newest
// messages. marks note what is said with it.
func (c *compaction) opening(ctx context.Context, o opening, b compact.Budget) (
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
	texts = append(about, c.conversation.identity(), c.about.place(ctx), c.conversation.prompt())
	past := c.earlierWork
	if c.conversation.isLead() {
		past = c.boardForLead
	}
	for _, part := range []func(context.Context) (string, error){past, c.members} {
		text, err := part(ctx)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, text)
	}
	if !o.withoutMail {
		mail, err := c.conversation.oldMail(ctx, min(maxOldMail, b.Opening))
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, mail)
	}
	record := c.record
	if _, err := os.Stat(record); err != nil {
		record = ""
	}
	texts = append(append(texts, o.skills...), prompt.Compressed(o.summary, record))
	if t, ok := c.claims.CurrentTask(); ok {
		task, key, err := c.claims.taskPrompt(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		plan, err := c.planState(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		texts, marks = append(texts, task, plan), append(marks, key)
	}
	if list := c.todo.Text(); list != "" {
		texts = append(texts, prompt.Reminder("Your todo list:\n%s", text.EscapeTags(list)))
	}
	return texts, marks, nil
}

// lasting returns the skills in messages, which a summary keeps, or which an earlier one has kept.
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

// boardForLead names the tasks that are open or need attention, and in one line those that have landed.
func (c *compaction) boardForLead(ctx context.Context) (string, error) {
	tasks, err := c.leadTasks(ctx)
	if err != nil {
		return "", err
	}
	all, err := c.board.List(ctx)
	if err != nil {
		return "", err
	}
	var landed []string
	for _, t := range all {
		if t.Status == muster.Completed && t.Landed != nil {
			landed = append(landed, prompt.LandedTask(t))
		}
	}
	if n := len(landed) - maxLanded; n > 0 {
		landed = append([]string{fmt.Sprintf("%d earlier tasks", n)}, landed[n:]...)
	}
	text := tasksOnBoard(tasks)
	if len(landed) > 0 {
		text += "\nLanded: " + strings.Join(landed, ", ")
	}
	return strings.TrimPrefix(text, "\n"), nil
}

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

func (c *compaction) members(ctx context.Context) (string, error) {
	all, err := c.roster.List(ctx)
	if err != nil {
		return "", err
	}
	members, n := "", 0
	for _, m := range all {
		if m.Name == c.conversation.record.Name || m.Status == muster.Shutdown {
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

// earlierWork tells what the member has completed: of the last tasks the result, the commit and its files; of some
// before them a line; of all others their number.
func (c *compaction) earlierWork(ctx context.Context) (string, error) {
	all, err := c.board.List(ctx)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t muster.Task) bool {
		return t.Status != muster.Completed || t.CompletedBy != c.conversation.record.Name
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
	if t.Landed != nil && c.landedFiles != nil {
		files, err := c.landedFiles(ctx, t.Landed.Commit)
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

// surroundings are what models are told of where they work.
type surroundings struct {
	home          paths.Dir
	directory     string // below home: where commands start; "" is home
	scratch       string // where they start in the member's scratch checkout
	isLead        bool
	run           func(context.Context) (muster.Run, error)
	lander        Lander
	gitState      func(context.Context) string
	commandLimits string
	permissions   string
	instructions  *instructions.Files
	skills        []skills.Skill
	roles         []roles.Role
	memory        func() (repository, user memory.Dir)
	secrets       *redact.Secrets
	tasks         holder
	isAlone       func(context.Context) bool // the member is a lead without a team
	diary         *diary
}

// texts returns what a model is told at the beginning of a conversation; see prompt.Facts.Texts. The project's
// instructions are those of the user's checkout: no member can change them. A subagent is told of no skills and
// teammates. What cannot be found out is left out.
func (s *surroundings) texts(ctx context.Context, isSubagent bool) ([]string, error) {
	run, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	f := prompt.Facts{Root: string(s.home), Directory: s.directory, Now: time.Now(), Check: run.CheckText(),
		CommandLimits: s.commandLimits, Permissions: s.permissions,
		Target:       strings.TrimPrefix(run.Target, "refs/heads/"),
		Instructions: s.secrets.String(s.instructions.Read().Text)}
	if !isSubagent {
		list, _ := skills.List(s.skills)
		f.Skills = s.secrets.String(list)
		if s.isLead && run.Cap > 0 {
			f.Roles = s.secrets.String(roles.List(s.roles))
		}
		if s.memory != nil {
			repository, user := s.memory()
			f.Memory = s.secrets.String(memory.Index(user, repository))
		}
	}
	if s.gitState != nil {
		f.Git = s.gitState(ctx)
	}
	if f.Tip, err = s.lander.Target(ctx); err != nil {
		s.diary.dropped(ctx, "reading the target for the facts", err)
	}
	stable, now := f.Texts()
	return []string{stable, now}, nil
}

// place tells a member where its tools run while it has no task. The text of a task tells it of the task, and the
// system prompt tells a lead that works alone. A lead with a team is told the rules for one, too.
func (s *surroundings) place(ctx context.Context) (text string) {
	if s.isAlone(ctx) {
		return ""
	}
	if _, hasTask := s.tasks.CurrentTask(); !hasTask {
		text = prompt.ScratchView(s.scratch)
	}
	if s.isLead {
		text += "\n" + prompt.TeamRules()
	}
	return strings.TrimPrefix(text, "\n")
}
