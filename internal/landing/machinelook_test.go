package landing_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/landing"
)

// piece is what a task is about.
type piece struct {
	kind  string
	files map[string]string // what its owner does
	mend  map[string]string // what helps when the check is red; nil: it never is because of this task
}

// draw says what a task is about. Each task has a file of its own, by which its work is known on the target; a shared
// one also has a line in a file, where it conflicts with others. No two files have the same content, or git would take
// one that is made for the new name of one that was removed.
func (m *machine) draw(id muster.TaskID) *piece {
	n := strconv.Itoa(int(id))
	p := &piece{files: map[string]string{"work-" + n: n + "\n"}}
	p.kind = rapid.SampledFrom([]string{"good", "good", "shared", "shared", "pair", "pair", "broken", "flaky", "cure", "shoddy"}).Draw(m.r, "kind")
	switch p.kind {
	case "pair": // two merge cleanly, and break the check together
		if m.isHalf = !m.isHalf; m.isHalf {
			m.pairs++
		}
		half := fmt.Sprintf("pair-%d-%s", m.pairs, map[bool]string{true: "a", false: "b"}[m.isHalf])
		p.files[half], p.mend = half+"\n", map[string]string{half: ""}
	case "broken":
		p.files["broken-"+n], p.mend = "broken-"+n+"\n", map[string]string{"broken-" + n: ""}
	case "flaky": // the check is red once, and then green on the very same tree
		p.files["flaky-"+n] = "flaky-" + n + "\n"
	case "shoddy": // the check passes, and a reviewer returns it
		p.files["shoddy-"+n], p.mend = "shoddy-"+n+"\n", map[string]string{"shoddy-" + n: ""}
	case "cure": // of a red base
		p.files["broken-base"] = ""
	}
	return p
}

// undoneBy returns the task that has taken a task back and that was not taken back itself, 0 for none.
func undoneBy(tasks []muster.Task, id muster.TaskID) muster.TaskID {
	for _, t := range tasks {
		if t.ID > id && t.Landed != nil && slices.Contains(t.Undoes, id) && undoneBy(tasks, t.ID) == 0 {
			return t.ID
		}
	}
	return 0
}

// look fails unless all that landings promise holds.
func (m *machine) look() {
	tip, tasks := m.tip(), m.tasks()
	history := m.landed(tip)
	m.lookAtBoard(tasks, history)
	m.lookAtContent(tip, tasks)
	m.lookAtGreen(tip, history)
	m.lookAtReviews(tip, history)
	m.lookAtRefs(tasks)
	m.lookAtReceipts()
}

// landedCommit is a commit of the target's.
type landedCommit struct {
	commit, receipt, review string
	task                    muster.TaskID
}

// landed returns what has landed, the latest first.
func (m *machine) landed(tip string) (all []landedCommit) {
	const trailer = "%%(trailers:key=Muster-%s,valueonly,separator=%%x2C)"
	// The check is the last: its command has the separator in it.
	format := fmt.Sprintf("--format=%%H|"+trailer+"|"+trailer+"|"+trailer, "Task", "Review", "Check")
	for line := range strings.Lines(m.git(m.root, "log", "--first-parent", format, "main.."+tip)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		id, err := strconv.Atoi(part[1])
		if err != nil {
			m.r.Fatalf("the commit %s of no task is on the target", part[0])
		}
		all = append(all, landedCommit{commit: part[0], task: muster.TaskID(id), review: part[2], receipt: part[3]})
	}
	return all
}

// lookAtBoard wants what the board calls landed to be on the target once, and nothing else to be there.
func (m *machine) lookAtBoard(tasks []muster.Task, history []landedCommit) {
	on := map[muster.TaskID][]string{}
	for _, c := range history {
		on[c.task] = append(on[c.task], c.commit)
	}
	known := map[muster.TaskID]bool{}
	for _, t := range tasks {
		known[t.ID] = true
		_, isCutOff := m.cutOff[t.ID]
		switch {
		case t.Landed != nil && (len(on[t.ID]) != 1 || on[t.ID][0] != t.Landed.Commit):
			m.r.Fatalf("task %d has landed as %s, and on the target is %v", t.ID, t.Landed.Commit, on[t.ID])
		case t.Landed == nil && len(on[t.ID]) > 0 && (!isCutOff || len(on[t.ID]) > 1):
			m.r.Fatalf("task %d is %s, and on the target is %v", t.ID, t.Status, on[t.ID])
		}
		if was := m.accepted[t.ID]; was != "" && (t.Landed == nil || t.Landed.Commit != was) {
			m.r.Fatalf("task %d had landed as %s, and is %+v", t.ID, was, t)
		}
	}
	for id, commits := range on {
		if !known[id] {
			m.r.Fatalf("task %d is not on the board, and on the target is %v", id, commits)
		}
	}
}

// lookAtContent wants the work of what has landed to be on the target, unless it was taken back, and no other.
func (m *machine) lookAtContent(tip string, tasks []muster.Task) {
	files := strings.Fields(m.git(m.root, "ls-tree", "--name-only", tip))
	shared := strings.Fields(m.git(m.root, "show", tip+":shared"))
	for _, t := range tasks {
		p := m.pieces[t.ID]
		if _, isCutOff := m.cutOff[t.ID]; p == nil || isCutOff || p.files == nil {
			continue
		}
		n := strconv.Itoa(int(t.ID))
		want := t.Landed != nil && undoneBy(tasks, t.ID) == 0
		if slices.Contains(files, "work-"+n) != want {
			m.r.Fatalf("task %d (%s) is %s, its work is wanted: %t, and on the target are %v", t.ID, p.kind, t.Status, want, files)
		}
		lines := len(slices.DeleteFunc(slices.Clone(shared), func(line string) bool { return line != n }))
		if p.kind == "shared" && want && lines != 1 {
			m.r.Fatalf("the line of task %d is there %d times: %v", t.ID, lines, shared)
		}
	}
}

// lookAtGreen wants the target to be green, unless it never was.
func (m *machine) lookAtGreen(tip string, history []landedCommit) {
	tree := m.git(m.root, "rev-parse", tip+"^{tree}")
	isGreen := m.isGreen(tree)
	for _, c := range history {
		if strings.HasPrefix(c.receipt, muster.ReceiptGreen) && !isGreen {
			m.r.Fatalf("%s is red, and it was green at %s", target, c.commit)
		}
	}
	if m.state == "ok" && !isGreen {
		m.r.Fatalf("%s is red, and is said to be green", target)
	}
}

// lookAtRefs wants no landing ref of what is not landing.
func (m *machine) lookAtRefs(tasks []muster.Task) {
	for _, ref := range strings.Fields(m.git(m.root, "for-each-ref", "--format=%(refname)", "refs/muster/landing")) {
		isLanding := false
		for _, t := range tasks {
			_, isCutOff := m.cutOff[t.ID]
			isLanding = isLanding || strings.HasSuffix(ref, fmt.Sprintf("/%d-%d", t.ID, t.Fence)) && isCutOff
		}
		if !isLanding {
			m.r.Fatalf("%s is left", ref)
		}
	}
}

// reviewer is that of a process, which returns what is shoddy.
func (m *machine) reviewer(l *life) landing.Reviewer {
	return func(_ context.Context, r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		l.hit("landing.asked")
		var v landing.ReviewVerdict
		for _, f := range r.Diff.Files {
			if strings.HasPrefix(f.File, "shoddy-") {
				v.Comments = append(v.Comments, landing.ReviewComment{File: f.File, Line: 1, Text: "Do better."})
			}
		}
		v.Approved, v.Model = len(v.Comments) == 0, "m/1"
		return v, nil
	}
}

// lookAtReviews wants whatever has landed to be reviewed where that is asked for, and nothing shoddy on the target.
// What takes landed work back needs no review: the user has asked for it.
func (m *machine) lookAtReviews(tip string, history []landedCommit) {
	if m.review == "" {
		return
	}
	for _, c := range history {
		if _, isWork := m.pieces[c.task]; isWork && c.review != "approved by reviewer (m/1)" {
			m.r.Fatalf("task %d has landed as %s, and its review is %q", c.task, c.commit, c.review)
		}
	}
	if files := m.git(m.root, "ls-tree", "--name-only", tip); strings.Contains(files, "shoddy-") {
		m.r.Fatalf("shoddy work has landed: %s", files)
	}
}
