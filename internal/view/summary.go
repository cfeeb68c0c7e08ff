package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/markdown"
	"muster/internal/text"
)

// Summary is how a run ended. Everything in it comes from records, events and the target branch, never from what a
// model says of its own work. Only Text may be a model's words.
type Summary struct {
	Run muster.Run
	// Code is the exit code: 0 if all is done, 3 if the run stopped with work left.
	Code       int
	Text       string // the lead's last words, or why the run stopped
	WordsShown bool   // the reader has seen Text already
	Markdown   bool   // the lead's words are drawn as Markdown on a terminal
	CheckIsRed bool   // the target's check was red at the end
	Tasks      []muster.Task
	// Unreadable are the tasks whose records cannot be read, and why.
	Unreadable map[muster.TaskID]string
	// OffTarget are the tasks that landed and are no longer on the target, because somebody moved the branch back.
	OffTarget []muster.TaskID
	// Spending is what the run has spent.
	Spending Spending
	// GoOn is what to type behind muster resume.
	GoOn string
	// Tally has counted all events of the run.
	Tally    *Tally
	Now      time.Time
	Detached bool // no branch is checked out that could take the work
	// RepositoryFlag stands before the arguments of git and muster when the repository is elsewhere: "-C DIR ".
	RepositoryFlag string
	// Moved is the user's branch that was to be moved forward to the target at the end, "" for none, and NotMoved why
	// it was not.
	Moved, NotMoved string
	// Proof says what bears out the landed commits; "": nobody has looked.
	Proof string
	// Unconfined says that the commands of members ran with the user's rights.
	Unconfined bool
	// IsTemporary says that the repository is not kept, so that no command can be given for it.
	IsTemporary bool

	// The tasks, sorted by how they ended: each is in one list. Those in landed have their work on the target.
	// unchanged were completed without a commit, and unfinished are open or need attention.
	landed, unchanged, unfinished []muster.Task
	// offTarget are the tasks that landed and are no longer on the target.
	offTarget []muster.Task
	// foreign are the tasks that another program completed. What their lanes hold has not landed.
	foreign []muster.Task
}

// sortTasks sorts the tasks that belong to the run: those made or completed in it, and those still open. An open task
// of an earlier run belongs to it too, because the team works on all that is open.
func (s *Summary) sortTasks() {
	for _, t := range s.Tasks {
		switch {
		case t.Open():
			s.unfinished = append(s.unfinished, t)
		case !s.Run.Has(t): // an earlier run's
		case t.Status == muster.NeedsAttention:
			s.unfinished = append(s.unfinished, t)
		case isForeign(t):
			s.foreign = append(s.foreign, t)
		case t.Landed == nil:
			s.unchanged = append(s.unchanged, t)
		case slices.Contains(s.OffTarget, t.ID):
			s.offTarget = append(s.offTarget, t)
		default:
			s.landed = append(s.landed, t)
		}
	}
}

// isForeign reports whether another program completed a task that is completed. An earlier version then wrote System.
func isForeign(t muster.Task) bool {
	return t.Landed == nil && (t.CompletedBy == "" || t.CompletedBy == muster.System)
}

// count is the number of all tasks of the run, those included whose records cannot be read.
func (s Summary) count() int {
	return len(s.landed) + len(s.offTarget) + len(s.unchanged) + len(s.foreign) + len(s.unfinished) + len(s.Unreadable)
}

// IsAnswer reports whether the run ended well without a task: all that it has brought is what its lead says.
func (s Summary) IsAnswer() bool {
	s.sortTasks()
	return s.Code == 0 && s.count() == 0
}

// Draw returns the end of a run as it is printed: a headline, what is unfinished and why, a table of what is done, and
// what to type next. Of a run without tasks it is the text, which is then the lead's answer to a question.
func (s Summary) Draw(screen Screen) string {
	// The receiver is a copy, so the caller's summary stays unsorted and can be drawn again.
	s.sortTasks()
	if s.count() == 0 && s.Text == "" {
		return ""
	}
	if s.count() == 0 {
		words := text.Clean(s.Text) + "\n"
		if s.Code == 0 && s.drawsMarkdown(screen) {
			words = strings.Join(markdown.Draw(s.Text, screen.Width-1, screen.IsOn()), "\n") + "\n"
		}
		if s.goesOn() {
			words += "\n"
			if line := s.Spending.line(0); line != "" {
				words += line + "\n"
			}
			words += s.goOn()
		}
		return words
	}
	w := new(strings.Builder)
	fmt.Fprintln(w, screen.wrapped(s.headline()))
	for _, t := range s.unfinished {
		fmt.Fprintln(w, s.unfinishedLine(t))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Unreadable)) {
		fmt.Fprintf(w, "%2d  cannot be read: %s\n", id, text.CutColumns(text.OneLine(s.Unreadable[id]), 160))
	}
	// The reason has a line of its own only where nothing above has said it.
	off, why := s.splitReason()
	if why, _, _ = strings.Cut(why, "\n"); s.Code == 0 || s.CheckIsRed || off != "" ||
		len(s.unfinished)+len(s.Unreadable) > 0 {
		why = "" // there is none, or the headline says it
	}
	if off+why != "" {
		fmt.Fprintln(w, text.OneLine(off+why))
	}
	if len(s.landed)+len(s.offTarget)+len(s.unchanged)+len(s.foreign) > 0 {
		w.WriteString("\n" + s.table(screen))
	}
	w.WriteString(s.lastWords(screen))
	s.nextSteps(w, screen)
	return w.String()
}

// headline says how many tasks landed, how they were verified, and what is left. It never claims more than is known:
// work that landed without a check, or under a check that was red before, is called not verified.
func (s Summary) headline() string {
	h := fmt.Sprintf("%d of %s landed on %s", len(s.landed), text.Count(s.count(), "task"), text.OneLine(s.Run.Target))
	if s.count() == len(s.unchanged) {
		h = text.Count(s.count(), "task") + " done without a change"
	} else if n := len(s.unchanged); n > 0 {
		h += fmt.Sprintf(", %d done without a change", n)
	}
	if n := len(s.offTarget); n > 0 {
		h += fmt.Sprintf(", %d landed and no longer on it", n)
	}
	if n := len(s.foreign); n > 0 {
		h += fmt.Sprintf(", %d completed by another program and not landed", n)
	}
	if len(s.unfinished)+len(s.Unreadable) == 0 {
		h += " in " + longDuration(s.duration())
	}
	// Landed while the check was red as on the base, together with a later one, or by a check that proves nothing.
	still, covered, unchecked := 0, 0, 0
	for _, t := range s.landed {
		switch t.Landed.Receipt {
		case muster.ReceiptStillRed:
			still++
		case muster.ReceiptCovered:
			covered++
		case muster.ReceiptUnchecked:
			unchecked++
		}
	}
	// The first that holds is what can be claimed of all that landed.
	check := text.OneLine(s.Run.Check)
	switch {
	case len(s.landed) == 0 && s.CheckIsRed:
		h += ", and the check is red"
		if s.Run.BaseCheck != "" {
			h += " as it was at the start"
		}
		h = s.withFailure(h + ": " + check)
	case len(s.landed) == 0:
	case check == "":
		h += `, NOT VERIFIED: no check is set (muster init finds one)`
	case unchecked > 0:
		h += fmt.Sprintf(", %d of them NOT VERIFIED", unchecked)
		if s.Tally != nil && len(s.Tally.unverified) > 0 {
			h += ": " + text.CutColumns(strings.Join(s.Tally.unverified, "; "), 200)
		}
	case s.CheckIsRed:
		h = s.withFailure(h + ", NOT VERIFIED: the check is red as it was at the start: " + check)
	case still > 0:
		h += fmt.Sprintf(", checked with %s: %d of them landed while it was still red", check, still)
	case covered > 0:
		h += fmt.Sprintf(", checked with %s: %d of them by the check of a later one", check, covered)
	default:
		h += ", each checked with " + check
	}
	if len(s.landed) > 0 && s.Tally != nil && len(s.Tally.ranNone) > 0 {
		h += fmt.Sprintf(", which has run no test (%q)", text.CutColumns(s.Tally.ranNone[0], 80))
	}
	if n := len(s.unfinished) + len(s.Unreadable); n > 0 {
		h += fmt.Sprintf("; %d %s left", n, text.Plural(n, "is", "are"))
		if _, why := s.splitReason(); why != "" && s.Code != 0 {
			h += ": " + headlineReason(why)
		}
	}
	return h
}

// withFailure adds what failed on the base, where that is known.
func (s Summary) withFailure(h string) string {
	if s.Tally != nil && s.Tally.baseFailed != "" {
		h += ", " + text.CutColumns(s.Tally.baseFailed, 120)
	}
	return h
}

// splitReason returns why the run ended. If landed work is no longer on the target, off is the first line of the text:
// it says what to type and is never cut.
func (s Summary) splitReason() (off, why string) {
	if len(s.offTarget) > 0 {
		off, why, _ = strings.Cut(s.Text, "\n")
		return off, why
	}
	return "", s.Text
}

// duration is how long processes of the team worked on the run. A night between an interrupted run and its resumption
// does not count.
func (s Summary) duration() time.Duration {
	end := s.Now
	if s.Run.EndedAt > 0 {
		end = muster.Time(s.Run.EndedAt)
	}
	return max(end.Sub(muster.Time(s.Run.StartedAt))-s.Tally.away, 0)
}

// unfinishedLine says what is left of a task and why:
//
//	5  report     needs you  3 attempts, last: conflict in report.go with 4 (muster log --task 5)
//
// The column of the subjects is as wide as the widest of all that are left.
func (s Summary) unfinishedLine(t muster.Task) string {
	names := 9
	for _, x := range s.unfinished {
		names = max(names, min(text.Columns(text.OneLine(x.Subject)), taskColumn))
	}
	// The first that holds keeps the task from being finished; what follows it does not matter yet.
	why := ""
	switch {
	case t.Status == muster.NeedsAttention:
		why = fmt.Sprintf("%s (muster log --task %d)", text.CutColumns(text.OneLine(t.Result), 100), t.ID)
	case len(t.BlockedBy) > 0:
		why = "waits for " + IDs(t.BlockedBy)
	case t.Owner != "":
		why = string(t.Owner) + "'s"
		if t.ClaimedAt > 0 {
			why += " since " + Clock(muster.Time(t.ClaimedAt), s.Now)
		}
		if t.Returned != "" {
			why += ", did not land: " + text.CutColumns(text.OneLine(t.Returned), 100)
		}
	case t.Fence > 0: // it was claimed, and is again for whoever takes it
		why = s.leftText(t)
	case t.ClaimRole != "":
		why = "for a " + text.OneLine(t.ClaimRole)
	default:
		why = "nobody has taken it"
	}
	subject := text.PadColumns(text.CutColumns(text.OneLine(t.Subject), names), names)
	return fmt.Sprintf("%2d  %s  %-9s  %s", t.ID, subject, TaskWord(t), text.OneLine(why))
}

// leftText says of an open task without an owner who had it last, and how its landings ended:
//
//	alice left it; 3 landings came back, the last: conflict in report.go
func (s Summary) leftText(t muster.Task) string {
	work := s.Tally.effortOf(t.ID)
	why := "nobody has it now"
	if work.owner != "" {
		why = string(work.owner) + " left it"
	}
	if n := work.comebacks(); n > 0 {
		why += "; " + text.Count(n, "landing") + " came back"
		if t.Returned != "" {
			why = Because(why+text.Plural(n, "", ", the last"), text.CutColumns(text.OneLine(t.Returned), 100))
		}
	}
	return why
}

// table returns the lines of what is done: who did it, what landed, how it was checked, and what it took. The last row
// has the sums. The tokens of turns that belong to no task are in the sum only.
func (s Summary) table(screen Screen) string {
	t := Table{Titles: []string{">#", "TASK", "OWNER", "COMMIT", ">TRIES", "CHECK", ">TIME", ">TOKENS"}, Wide: 1,
		Least: []int{4, 7, 3, 2, 6}}
	if s.Spending.Total.Dollars > 0 {
		t.Titles = append(t.Titles, ">COST")
	}
	for _, x := range s.Tasks {
		if x.Status != muster.Completed || !s.Run.Has(x) {
			continue
		}
		work := s.Tally.effortOf(x.ID)
		// The record may name no owner any more; then the events tell who had the task last.
		owner := cmp.Or(x.Owner, work.owner)
		commit, tries, check := Cell{Text: "-", Tone: Faint}, "", Cell{Text: "no change", Tone: Faint}
		switch {
		case x.Landed != nil:
			commit, tries = Text(fmt.Sprintf("%.7s", x.Landed.Commit)), fmt.Sprint(max(work.tries, 1))
			check = checkCell(*x.Landed)
		case isForeign(x):
			check.Text = "not landed"
		}
		took := ""
		if work.time > 0 {
			took = elapsed(work.time)
		}
		row := []any{x.ID, x.Subject, Named(owner), commit, tries, check, took, someTokens(work.tokens),
			s.Spending.Tasks[x.ID].Cost()}
		t.Row(row[:len(t.Titles)]...)
	}
	row := []any{"", "", "", "", "", "", elapsed(s.duration()), someTokens(s.Tally.tokens), s.Spending.Total.Cost()}
	t.Row(row[:len(t.Titles)]...)
	return t.Draw(screen)
}

// someTokens returns a number of tokens, or "" where none were counted.
func someTokens(n float64) string {
	if n <= 0 {
		return ""
	}
	return tokens(n)
}

// checkCell says what the check gave: ok 0.7s. What was not verified by a check that is set is in the colour of bad
// news, and without a time, which would look like that of a proof.
func checkCell(l muster.Landed) Cell {
	c := Cell{Text: text.OneLine(l.Receipt)}
	switch l.Receipt {
	case muster.ReceiptGreen, muster.ReceiptCovered:
		c.Tone = Good
	case muster.ReceiptStillRed, muster.ReceiptUnchecked:
		if c.Tone = Bad; l.Receipt == muster.ReceiptUnchecked && l.Check == "" {
			c = Text("no check")
		}
		return c
	}
	switch {
	case l.CoveredBy > 0:
		c.Text += fmt.Sprintf(" by #%d", l.CoveredBy)
	case l.Seconds > 0:
		c.Text += fmt.Sprintf(" %.1fs", l.Seconds)
	}
	return c
}

// UnconfinedLine says at the end of a run that had no sandbox what that means.
const UnconfinedLine = "no sandbox: commands of members ran with your rights"

// nextSteps prints what was returned and fixed on the way, and what to type next. Each command can be copied as it
// stands. Nothing is proposed that cannot succeed: no merge where nothing has landed, and no resume where no task is
// open.
func (s Summary) nextSteps(w *strings.Builder, screen Screen) {
	fmt.Fprintln(w)
	proof := ""
	if s.Proof != "" {
		proof = "receipts:   " + s.Proof
	}
	for _, line := range []string{s.returned(), reviewed(s.landed), flaky(s.landed), advisory(s.landed), proof} {
		if line != "" {
			fmt.Fprintln(w, screen.wrapped(line))
		}
	}
	if line := s.Spending.line(len(s.landed)); line != "" {
		fmt.Fprintln(w, line)
	}
	if line := s.Tally.Trouble(); line != "" {
		fmt.Fprintln(w, line)
	}
	if line := s.Tally.Remembered(); line != "" && !s.IsTemporary {
		fmt.Fprintln(w, line)
	}
	if s.Unconfined {
		fmt.Fprintln(w, UnconfinedLine)
	}
	target := text.OneLine(s.Run.Target)
	switch {
	case s.IsTemporary:
		fmt.Fprintln(w, "see it all: muster demo --keep DIR (this repository goes with the demo)")
		return
	case len(s.landed) > 0:
		fmt.Fprintln(w, "see them:   git "+s.RepositoryFlag+"log --oneline "+target)
		if s.Moved != "" && s.NotMoved == "" {
			fmt.Fprintln(w, "taken:      "+text.OneLine(s.Moved)+" was moved forward to them")
		} else if s.Detached {
			fmt.Fprintf(w, "take them:  git %smerge %s  (or push that branch: HEAD is detached)\n", s.RepositoryFlag,
				target)
		} else {
			fmt.Fprintln(w, "take them:  muster "+s.RepositoryFlag+"merge")
		}
		if s.NotMoved != "" {
			fmt.Fprintf(w, "%s was not moved: %s\n", text.OneLine(s.Moved), text.OneLine(s.NotMoved))
		}
	}
	gaveUp := func(t muster.Task) bool { return t.Status == muster.NeedsAttention }
	if i := slices.IndexFunc(s.unfinished, gaveUp); i >= 0 {
		fmt.Fprintf(w, "try again:  muster %stask retry %d\n", s.RepositoryFlag, s.unfinished[i].ID)
	}
	if s.goesOn() || slices.ContainsFunc(s.unfinished, muster.Task.Open) {
		w.WriteString(s.goOn())
	}
}

// goesOn reports whether the run was stopped before its end, as by a model that does not answer.
func (s Summary) goesOn() bool { return s.Code == 3 && s.Run.EndedAt == 0 && !s.IsTemporary }

func (s Summary) goOn() string {
	return strings.TrimSpace("go on:      muster "+s.RepositoryFlag+"resume "+s.GoOn) + "\n"
}
