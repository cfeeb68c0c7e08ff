package landing

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// The trailers of a landed commit.
const (
	trailerTask   = "Muster-Task"
	trailerMember = "Muster-Member"
	trailerCheck  = "Muster-Check"
	trailerReview = "Muster-Review"
)

// trailerSnapshot is the trailer of a commit with what the user had not committed when a run began.
const trailerSnapshot = "Muster-Snapshot"

// snapshotMessage is the message of such a commit.
const snapshotMessage = "Snapshot of uncommitted changes\n\nWhat was not committed in the checkout when the team " +
	"began.\n\n" + trailerSnapshot + ": true\n"

// SnapshotIn returns the snapshot of the user's uncommitted changes among the commits that tip has and head lacks: the
// oldest, because a team begins with it. It is "" where there is none. isAll reports whether there is nothing else.
func SnapshotIn(ctx context.Context, repo *git.Repo, head, tip string) (commit string, isAll bool, err error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "log", "--first-parent",
		"--format=%H %(trailers:key="+trailerSnapshot+",valueonly,separator=%x2C)", tip, "^"+head)
	lines := strings.FieldsFunc(out, func(c rune) bool { return c == '\n' })
	for _, line := range lines {
		if id, value, _ := strings.Cut(line, " "); value != "" {
			commit = id
		}
	}
	return commit, commit != "" && len(lines) == 1, err
}

// landedTrailers matches the end of a landed commit's message: its last paragraph, as git defines trailers. What a
// summary says above it is never taken for one. The matches are the task, the receipt, the check's command, and who has
// approved it.
var landedTrailers = lazyregexp.New(`\n\n(?:.+\n)*?` + trailerTask + `: (\d+)\n(?:.+\n)*?` +
	trailerCheck + `: (.*?)(?:, (.*))?\n(?:` + trailerReview + `: (.*)\n)?(?:.+\n)*$`)

// message returns the message of a landed commit: its words, and the trailers. The trailers are a paragraph of their
// own, so that nothing in the words can pass for one.
func message(w words, task muster.TaskID, by muster.Name, landed muster.Landed) string {
	var b strings.Builder
	check := landed.Receipt
	if landed.Check != "" {
		check += ", " + text.OneLine(landed.Check)
	}
	fmt.Fprintf(&b, "%s\n\n%s: %d\n%s: %s\n%s: %s\n", w.text, trailerTask, task, trailerMember, by, trailerCheck, check)
	if landed.Review != "" {
		fmt.Fprintf(&b, "%s: %s\n", trailerReview, landed.Review)
	}
	for _, line := range w.trailers {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// laneMessage returns the message of the commit in the lane. It has no trailers: only a commit on the target says that
// a task has landed.
func laneMessage(t muster.Task, summary string) string {
	return subject(t) + "\n\n" + plain(summary) + "\n"
}

// subject returns the first line of a task's commit. Without a subject git would refuse the commit, so the task's
// number stands in.
func subject(t muster.Task) string {
	if s := text.OneLine(t.Subject); s != "" {
		return s
	}
	return fmt.Sprintf("Task %d", t.ID)
}

// plain returns the text as git accepts it in a message: valid UTF-8 without NUL.
func plain(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "") }

// findLanded finds the task's commit among those that have come to the target, which is at tip, since its landing
// began; nil when it is not there. So a landing is recognised that a crash kept from being recorded: only the runtime
// writes the target's first parents, and each of its commits names its task.
func findLanded(ctx context.Context, repo *git.Repo, t muster.Task, tip string) (*muster.Landed, error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "log", "-z", "--first-parent", "--format=%H%n%B",
		"--end-of-options", t.Landing.Onto+".."+tip)
	if err != nil {
		return nil, unavailable(ctx, "git cannot read the target's history", err)
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		commit, message, _ := strings.Cut(entry, "\n")
		if id, landed, ok := Trailers(message); ok && id == t.ID {
			landed.Commit = commit
			return &landed, nil
		}
	}
	return nil, nil
}

// Trailers returns what the message of a commit says of the landing that made it. ok is false where none has.
func Trailers(message string) (task muster.TaskID, landed muster.Landed, ok bool) {
	m := landedTrailers().FindStringSubmatch(strings.TrimRight(message, "\n") + "\n")
	if m == nil {
		return 0, landed, false
	}
	id, err := strconv.Atoi(m[1])
	return muster.TaskID(id), muster.Landed{Receipt: m[2], Check: m[3], Review: m[4]}, err == nil
}
