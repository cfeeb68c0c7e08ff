package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster"
)

// ending is how a run ended, as its summary tells it.
type ending struct {
	run   muster.Run
	code  int    // 0 all done, 3 stopped with work left
	text  string // the lead's last words, or why the run stopped
	red   bool   // the target's check was red at the end
	tasks []muster.Task
	tally *tally
	now   time.Time
	where string // what stands before the arguments of git and muster when the repository is elsewhere: "-C DIR "
	gone  bool   // the repository is not kept
}

// summary is the tasks of a run, sorted by how they ended.
type summary struct {
	ending
	landed, same, left []muster.Task
}

// summarise sorts the tasks that belong to the run: made or done in it, or still open.
func summarise(e ending) summary {
	s := summary{ending: e}
	for _, t := range e.tasks {
		switch {
		case t.Open():
			s.left = append(s.left, t)
		case max(t.CreatedAt, t.UpdatedAt) < e.run.StartedAt: // an earlier run's
		case t.Status == muster.NeedsAttention:
			s.left = append(s.left, t)
		case t.Landed == nil:
			s.same = append(s.same, t)
		default:
			s.landed = append(s.landed, t)
		}
	}
	return s
}

func (s summary) all() int { return len(s.landed) + len(s.same) + len(s.left) }

// write prints the end of a run.
func (s summary) write(w io.Writer, p paint, width int) error {
	if s.all() == 0 {
		if s.text != "" {
			fmt.Fprintln(w, manyLines(s.text))
		}
		return nil
	}
	fmt.Fprintln(w, s.headline())
	for _, t := range s.left {
		fmt.Fprintln(w, s.leftover(t))
	}
	if len(s.landed)+len(s.same) > 0 {
		fmt.Fprintln(w)
		if err := s.table(w, p, width); err != nil {
			return err
		}
	}
	s.closing(w)
	return nil
}

func (s summary) headline() string {
	h := fmt.Sprintf("%d of %s landed on %s", len(s.landed), number(s.all(), "task"), oneLine(s.run.Target))
	if s.all() == len(s.same) {
		h = number(s.all(), "task") + " done without a change"
	} else if n := len(s.same); n > 0 {
		h += fmt.Sprintf(", %d done without a change", n)
	}
	if len(s.left) == 0 {
		h += " in " + total(s.took())
	}
	still := 0
	for _, t := range s.landed {
		if t.Landed.Receipt == muster.ReceiptStillRed {
			still++
		}
	}
	check := oneLine(s.run.Check)
	switch {
	case len(s.landed) == 0:
	case check == "":
		h += `, NOT VERIFIED: no check is set (muster run --check "go test ./...")`
	case s.red:
		h += ", NOT VERIFIED: the check is red as it was at the start: " + check
	case still > 0:
		h += fmt.Sprintf(", checked with %s: %d of them landed while it was still red", check, still)
	default:
		h += ", each checked with " + check
	}
	if n := len(s.left); n > 0 {
		h += fmt.Sprintf("; %d %s left", n, map[bool]string{true: "is", false: "are"}[n == 1])
		if s.text != "" && s.code != 0 {
			h += ": " + cut(oneLine(s.text), 160)
		}
	}
	return h
}

func (s summary) took() time.Duration {
	end := s.now
	if s.run.EndedAt > 0 {
		end = muster.Time(s.run.EndedAt)
	}
	return max(end.Sub(muster.Time(s.run.StartedAt))-s.tally.away, 0)
}

// leftover says what is left of a task and why:
//
//	5  report     needs_attention  3 attempts, last: conflict in report.go with 4 (muster log --task 5)
func (s summary) leftover(t muster.Task) string {
	names := 9
	for _, x := range s.left {
		names = max(names, min(columns(oneLine(x.Subject)), taskColumn))
	}
	why := ""
	switch {
	case t.Status == muster.NeedsAttention:
		why = fmt.Sprintf("%s (muster log --task %d)", cut(oneLine(t.Result), 100), t.ID)
	case len(t.BlockedBy) > 0:
		why = "waits for " + list(t.BlockedBy)
	case t.Owner != "":
		why = string(t.Owner) + "'s"
		if t.ClaimedAt > 0 {
			why += " since " + clock(muster.Time(t.ClaimedAt), s.now)
		}
	case t.ClaimRole != "":
		why = "for a " + oneLine(t.ClaimRole)
	default:
		why = "nobody has taken it"
	}
	return fmt.Sprintf("%2d  %s  %-15s  %s", t.ID, pad(cut(oneLine(t.Subject), names), names), t.Status, oneLine(why))
}

func (s summary) table(w io.Writer, p paint, width int) error {
	t := table{titles: []string{">#", "TASK", "OWNER", "COMMIT", ">TRIES", "CHECK", ">TIME", ">TOKENS"}, wide: 1}
	for _, x := range s.tasks {
		if x.Status != muster.Completed || x.UpdatedAt < s.run.StartedAt {
			continue
		}
		work := s.tally.of(x.ID)
		owner := x.Owner
		if owner == "" {
			owner = work.owner
		}
		row := []cell{text(fmt.Sprint(x.ID)), text(oneLine(x.Subject)), {text: string(owner), who: string(owner)},
			{text: "-", tone: faint}, text(""), {text: "no change", tone: faint}, text(""), text("")}
		if x.Landed != nil {
			row[3], row[4], row[5] = text(fmt.Sprintf("%.7s", x.Landed.Commit)), text(fmt.Sprint(max(work.tries, 1))), proof(*x.Landed)
		}
		if work.time > 0 {
			row[6] = text(elapsed(work.time))
		}
		if work.tokens > 0 {
			row[7] = text(count(work.tokens))
		}
		t.rows = append(t.rows, row)
	}
	tokens := ""
	if s.tally.token > 0 {
		tokens = count(s.tally.token)
	}
	t.row(append(texts("", "", "", "", "", ""), text(elapsed(s.took())), text(tokens))...)
	return t.write(w, p, width)
}

// proof is what the check said: ok 0.7s.
func proof(l muster.Landed) cell {
	c := cell{text: oneLine(l.Receipt)}
	switch l.Receipt {
	case muster.ReceiptGreen:
		c.tone = good
	case muster.ReceiptStillRed, muster.ReceiptUnchecked:
		c.tone = bad
		return c
	}
	if l.Seconds > 0 {
		c.text += fmt.Sprintf(" %.1fs", l.Seconds)
	}
	return c
}

// closing is what was mended on the way, and what to type next.
func (s summary) closing(w io.Writer) {
	checks, conflicts := 0, 0
	for _, t := range s.landed {
		checks += s.tally.of(t.ID).checks
		conflicts += s.tally.of(t.ID).conflicts
	}
	fmt.Fprintln(w)
	var fixed []string
	if checks > 0 {
		fixed = append(fixed, number(checks, "red check"))
	}
	if conflicts > 0 {
		fixed = append(fixed, number(conflicts, "conflict"))
	}
	if fixed != nil {
		fmt.Fprintln(w, "returned and fixed: "+strings.Join(fixed, ", "))
	}
	target := oneLine(s.run.Target)
	switch {
	case s.gone:
		fmt.Fprintln(w, "see it all: muster demo --keep DIR (this repository is gone)")
		return
	case len(s.landed) > 0:
		fmt.Fprintln(w, "see them:   git "+s.where+"log --oneline "+target)
		fmt.Fprintln(w, "take them:  git "+s.where+"merge "+target)
	}
	for _, t := range s.left {
		if t.Status == muster.NeedsAttention {
			fmt.Fprintf(w, "try again:  muster %stask retry %d\n", s.where, t.ID)
			break
		}
	}
	if slices.ContainsFunc(s.left, muster.Task.Open) {
		fmt.Fprintln(w, "go on:      muster "+s.where+"resume")
	}
}
