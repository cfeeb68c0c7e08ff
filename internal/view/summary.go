package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"muster"
)

// Ending is how a run ended, as its summary tells it.
type Ending struct {
	Run   muster.Run
	Code  int    // 0 all done, 3 stopped with work left
	Text  string // the lead's last words, or why the run stopped
	Red   bool   // the target's check was red at the end
	Tasks []muster.Task
	// Unread are the tasks whose records cannot be read, and why.
	Unread map[muster.TaskID]string
	// Off are the tasks that landed and are no longer on the target.
	Off   []muster.TaskID
	Tally *Tally
	Now   time.Time
	Where string // what stands before the arguments of git and muster when the repository is elsewhere: "-C DIR "
	Gone  bool   // the repository is not kept
}

// Summary is the tasks of a run, sorted by how they ended.
type Summary struct {
	Ending
	landed, same, left []muster.Task
	off                []muster.Task // landed, and no longer on the target
	foreign            []muster.Task // another program completed them: what their lanes hold has not landed
}

// Summarise sorts the tasks that belong to the run: made or done in it, or still open.
func Summarise(e Ending) Summary {
	s := Summary{Ending: e}
	for _, t := range e.Tasks {
		switch {
		case t.Open():
			s.left = append(s.left, t)
		case !e.Run.Has(t): // an earlier run's
		case t.Status == muster.NeedsAttention:
			s.left = append(s.left, t)
		case t.Landed == nil && t.CompletedBy == muster.System:
			s.foreign = append(s.foreign, t)
		case t.Landed == nil:
			s.same = append(s.same, t)
		case slices.Contains(e.Off, t.ID):
			s.off = append(s.off, t)
		default:
			s.landed = append(s.landed, t)
		}
	}
	return s
}

func (s Summary) all() int {
	return len(s.landed) + len(s.off) + len(s.same) + len(s.foreign) + len(s.left) + len(s.Unread)
}

// Write prints the end of a run.
func (s Summary) Write(w io.Writer, p Paint, width int) error {
	if s.all() == 0 {
		if s.Text != "" {
			fmt.Fprintln(w, ManyLines(s.Text))
		}
		return nil
	}
	fmt.Fprintln(w, s.headline())
	for _, t := range s.left {
		fmt.Fprintln(w, s.leftover(t))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Unread)) {
		fmt.Fprintf(w, "%2d  cannot be read: %s\n", id, Cut(OneLine(s.Unread[id]), 160))
	}
	off, why := s.reasons()
	if why, _, _ = strings.Cut(why, "\n"); s.Code == 0 || s.Red || off != "" || len(s.left)+len(s.Unread) > 0 {
		why = "" // there is none, or the headline says it
	}
	if off+why != "" {
		fmt.Fprintln(w, OneLine(off+why))
	}
	if len(s.landed)+len(s.off)+len(s.same)+len(s.foreign) > 0 {
		fmt.Fprintln(w)
		if err := s.table(w, p, width); err != nil {
			return err
		}
	}
	s.closing(w)
	return nil
}

func (s Summary) headline() string {
	h := fmt.Sprintf("%d of %s landed on %s", len(s.landed), Count(s.all(), "task"), OneLine(s.Run.Target))
	if s.all() == len(s.same) {
		h = Count(s.all(), "task") + " done without a change"
	} else if n := len(s.same); n > 0 {
		h += fmt.Sprintf(", %d done without a change", n)
	}
	if n := len(s.off); n > 0 {
		h += fmt.Sprintf(", %d landed and no longer on it", n)
	}
	if n := len(s.foreign); n > 0 {
		h += fmt.Sprintf(", %d completed by another program and not landed", n)
	}
	if len(s.left)+len(s.Unread) == 0 {
		h += " in " + total(s.took())
	}
	still := 0
	for _, t := range s.landed {
		if t.Landed.Receipt == muster.ReceiptStillRed {
			still++
		}
	}
	check := OneLine(s.Run.Check)
	switch {
	case len(s.landed) == 0:
	case check == "":
		h += `, NOT VERIFIED: no check is set (muster run --check "go test ./...")`
	case s.Red:
		h += ", NOT VERIFIED: the check is red as it was at the start: " + check
	case still > 0:
		h += fmt.Sprintf(", checked with %s: %d of them landed while it was still red", check, still)
	default:
		h += ", each checked with " + check
	}
	if n := len(s.left) + len(s.Unread); n > 0 {
		h += fmt.Sprintf("; %d %s left", n, map[bool]string{true: "is", false: "are"}[n == 1])
		if _, why := s.reasons(); why != "" && s.Code != 0 {
			h += ": " + Cut(OneLine(why), 160)
		}
	}
	return h
}

// reasons are why the run ended as it did: off is the text's first line, when it says what is no longer on the target; it has
// what to type and is never cut.
func (s Summary) reasons() (off, why string) {
	if len(s.off) > 0 {
		off, why, _ = strings.Cut(s.Text, "\n")
		return off, why
	}
	return "", s.Text
}

func (s Summary) took() time.Duration {
	end := s.Now
	if s.Run.EndedAt > 0 {
		end = muster.Time(s.Run.EndedAt)
	}
	return max(end.Sub(muster.Time(s.Run.StartedAt))-s.Tally.away, 0)
}

// leftover says what is left of a task and why:
//
//	5  report     needs_attention  3 attempts, last: conflict in report.go with 4 (muster log --task 5)
func (s Summary) leftover(t muster.Task) string {
	names := 9
	for _, x := range s.left {
		names = max(names, min(columns(OneLine(x.Subject)), taskColumn))
	}
	why := ""
	switch {
	case t.Status == muster.NeedsAttention:
		why = fmt.Sprintf("%s (muster log --task %d)", Cut(OneLine(t.Result), 100), t.ID)
	case len(t.BlockedBy) > 0:
		why = "waits for " + IDs(t.BlockedBy)
	case t.Owner != "":
		why = string(t.Owner) + "'s"
		if t.ClaimedAt > 0 {
			why += " since " + Clock(muster.Time(t.ClaimedAt), s.Now)
		}
	case t.ClaimRole != "":
		why = "for a " + OneLine(t.ClaimRole)
	default:
		why = "nobody has taken it"
	}
	return fmt.Sprintf("%2d  %s  %-15s  %s", t.ID, Pad(Cut(OneLine(t.Subject), names), names), t.Status, OneLine(why))
}

func (s Summary) table(w io.Writer, p Paint, width int) error {
	t := Table{Titles: []string{">#", "TASK", "OWNER", "COMMIT", ">TRIES", "CHECK", ">TIME", ">TOKENS"}, Wide: 1}
	for _, x := range s.Tasks {
		if x.Status != muster.Completed || !s.Run.Has(x) {
			continue
		}
		work := s.Tally.of(x.ID)
		owner := x.Owner
		if owner == "" {
			owner = work.owner
		}
		row := []Cell{Text(fmt.Sprint(x.ID)), Text(OneLine(x.Subject)), {Text: string(owner), Who: string(owner)},
			{Text: "-", Tone: Faint}, Text(""), {Text: "no change", Tone: Faint}, Text(""), Text("")}
		if x.Landed == nil && x.CompletedBy == muster.System {
			row[5].Text = "not landed"
		}
		if x.Landed != nil {
			row[3], row[4], row[5] = Text(fmt.Sprintf("%.7s", x.Landed.Commit)), Text(fmt.Sprint(max(work.tries, 1))), proof(*x.Landed)
		}
		if work.time > 0 {
			row[6] = Text(elapsed(work.time))
		}
		if work.tokens > 0 {
			row[7] = Text(tokens(work.tokens))
		}
		t.Rows = append(t.Rows, row)
	}
	sum := ""
	if s.Tally.token > 0 {
		sum = tokens(s.Tally.token)
	}
	t.Row(append(texts("", "", "", "", "", ""), Text(elapsed(s.took())), Text(sum))...)
	return t.Write(w, p, width)
}

// proof is what the check said: ok 0.7s.
func proof(l muster.Landed) Cell {
	c := Cell{Text: OneLine(l.Receipt)}
	switch l.Receipt {
	case muster.ReceiptGreen:
		c.Tone = Good
	case muster.ReceiptStillRed, muster.ReceiptUnchecked:
		c.Tone = Bad
		return c
	}
	if l.Seconds > 0 {
		c.Text += fmt.Sprintf(" %.1fs", l.Seconds)
	}
	return c
}

// closing is what was mended on the way, and what to type next.
func (s Summary) closing(w io.Writer) {
	checks, conflicts := 0, 0
	for _, t := range s.landed {
		checks += s.Tally.of(t.ID).checks
		conflicts += s.Tally.of(t.ID).conflicts
	}
	fmt.Fprintln(w)
	var fixed []string
	if checks > 0 {
		fixed = append(fixed, Count(checks, "red check"))
	}
	if conflicts > 0 {
		fixed = append(fixed, Count(conflicts, "conflict"))
	}
	if fixed != nil {
		fmt.Fprintln(w, "returned and fixed: "+strings.Join(fixed, ", "))
	}
	target := OneLine(s.Run.Target)
	switch {
	case s.Gone:
		fmt.Fprintln(w, "see it all: muster demo --keep DIR (this repository is gone)")
		return
	case len(s.landed) > 0:
		fmt.Fprintln(w, "see them:   git "+s.Where+"log --oneline "+target)
		fmt.Fprintln(w, "take them:  git "+s.Where+"merge "+target)
	}
	for _, t := range s.left {
		if t.Status == muster.NeedsAttention {
			fmt.Fprintf(w, "try again:  muster %stask retry %d\n", s.Where, t.ID)
			break
		}
	}
	if slices.ContainsFunc(s.left, muster.Task.Open) {
		fmt.Fprintln(w, "go on:      muster "+s.Where+"resume")
	}
}
