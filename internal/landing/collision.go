package landing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/internal/treediff"
)

// landedChange is a commit that has landed since a lane left the target, as a returned task's owner is told of it. All
// of it is in the commit, which nobody can change; the board's record of the task may be gone.
type landedChange struct {
	commit  string
	task    string // its number
	owner   string
	subject string
	summary string
	files   []string // what it changed
}

func (c landedChange) String() string {
	return fmt.Sprintf("task %s %q by %s (%.7s)", c.task, c.subject, c.owner, c.commit)
}

// The limits on what is told of the changes that have landed.
const (
	maxChanges   = 8       // changes that are described; of others the count is told
	maxLanded    = 100     // changes that are looked at
	maxDiffs     = 6 << 10 // bytes of their differences altogether
	maxDiff      = 3 << 10 // bytes of one
	maxToldWords = 400     // bytes of a summary
	maxSides     = 3       // landed commits of which both sides are described; of others the ids are told
	maxSideText  = 2 << 10 // bytes of a description, or of a summary
	// A larger file is not compared: its difference is of no use, and git would hold all of it in memory.
	maxDiffFile = "256k"
)

var memberTrailer = lazyregexp.New(`(?m)^` + trailerMember + `: (.*)$`)

// literalPaths makes git take the names of files as they are, and not as patterns.
var literalPaths = []string{"GIT_LITERAL_PATHSPECS=1"}

// landedSince returns the changes that landings have brought to the tip since the head left the target's history, the
// newest first. Where files are given, they are those that touch one of them.
func (x explainer) landedSince(ctx context.Context, head, tip string, files []string) ([]landedChange, error) {
	args := []string{"log", "-z", "--first-parent", "--no-renames", "--name-only", "-m", fmt.Sprintf("-n%d", maxLanded),
		"--format=%x00%H%x00%B%x00", head + ".." + tip, "--"}
	args = append(args, files[:min(len(files), maxFiles)]...)
	out, err := x.repo.Do(ctx, git.Call{Dir: x.repo.CommonDir(), Args: args, Env: literalPaths})
	if err != nil {
		return nil, unavailable(ctx, "git cannot read what has landed", err)
	}
	return parseLanded(out), nil
}

// parseLanded reads what git prints for landedSince: of each commit nothing, its id, its message, and then the names of
// its files. No message and no name holds what separates them.
func parseLanded(out string) (all []landedChange) {
	for rest := strings.Split(out, "\x00"); len(rest) > 2; {
		if rest[0] != "" || !git.IsID(rest[1]) {
			rest = rest[1:]
			continue
		}
		c, isLanded := readLanded(rest[1], rest[2])
		for rest = rest[3:]; len(rest) > 0 && (rest[0] != "" || len(c.files) == 0); rest = rest[1:] {
			if len(rest) > 1 && rest[0] == "" && git.IsID(rest[1]) {
				break // a commit that changes no file
			}
			if name := strings.TrimPrefix(rest[0], "\n"); name != "" {
				c.files = append(c.files, name)
			}
		}
		if isLanded {
			all = append(all, c)
		}
	}
	return all
}

// readLanded reads the message of a landed commit. It is false for one that no landing has made: the user has put it
// there.
func readLanded(commit, message string) (c landedChange, ok bool) {
	message = strings.TrimRight(message, "\n") + "\n"
	at := landedTrailers().FindStringSubmatchIndex(message)
	if at == nil {
		return c, false
	}
	subject, body, _ := strings.Cut(message[:at[0]], "\n")
	c = landedChange{commit: commit, task: message[at[2]:at[3]], owner: "somebody",
		subject: text.CutBytes(text.OneLine(subject), 100),
		summary: text.CutBytes(text.OneLine(body), maxToldWords)}
	if m := memberTrailer().FindStringSubmatch(message[at[0]:]); m != nil {
		c.owner = text.OneLine(m[1])
	}
	return c, true
}

// explainer says what the work of a task has met on the target.
type explainer struct {
	repo  *git.Repo
	board *board.Board
}

// collision is what a task's work has met on the target.
type collision struct {
	with string   // the other tasks in a line, for people; "" when no landing has brought them
	met  []string // their commits, the newest last
	text string   // for the owner's model
}

// met says which landed work a head has met since it left the target: whose it is, what it was for, and which files
// it changed. Where files are given, they are those with which the head conflicts, and it says what the work changed
// there.
func (x explainer) met(ctx context.Context, head, tip string, files []string) (collision, error) {
	all, err := x.landedSince(ctx, head, tip, files)
	if err != nil || len(all) == 0 {
		return collision{}, err
	}
	var b strings.Builder
	b.WriteString("What has landed meanwhile (git show COMMIT), the newest first:\n")
	room := maxDiffs
	for _, c := range all[:min(len(all), maxChanges)] {
		if files != nil {
			c.files = slices.DeleteFunc(c.files, func(f string) bool { return !slices.Contains(files, f) })
		}
		fmt.Fprintf(&b, "- %s in %s\n", c, fileList(c.files))
		if c.summary != "" {
			fmt.Fprintf(&b, "  %s\n", c.summary)
		}
		if files == nil {
			continue
		}
		diff, err := x.diffOf(ctx, c.commit, c.files)
		if err != nil {
			return collision{}, err
		}
		if len(diff) > min(room, maxDiff) {
			for i, f := range c.files {
				c.files[i] = text.ShellQuote(f)
			}
			fmt.Fprintf(&b, "  Its difference is long: git show %.7s -- %s\n", c.commit, fileList(c.files))
			continue
		}
		room -= len(diff)
		b.WriteString(diff)
	}
	if more := len(all) - maxChanges; more > 0 {
		fmt.Fprintf(&b, "- and %d more: git log %.7s..%.7s\n", more, head, tip)
	}
	met := collision{text: b.String()}
	var names []string
	for _, c := range all {
		names, met.met = append(names, fmt.Sprintf("task %s of %s", c.task, c.owner)), append(met.met, c.commit)
	}
	slices.Reverse(met.met)
	met.with = text.List(names, 3)
	return met, nil
}

func (x explainer) diffOf(ctx context.Context, commit string, files []string) (string, error) {
	args := []string{"diff", "--no-color", "--no-renames", commit + "^1", commit, "--"}
	args = append(args, files[:min(len(files), maxFiles)]...)
	out, err := x.repo.Do(ctx, git.Call{Dir: x.repo.CommonDir(), Bare: true, Args: args,
		Settings: []git.Setting{{Key: "core.bigFileThreshold", Value: maxDiffFile}}, Env: literalPaths})
	if err != nil {
		return "", unavailable(ctx, "git cannot show what has landed", err)
	}
	return text.Clean(strings.ToValidUTF8(out, "?")), nil
}

// bothSides says what a task that is given up and the landed work that it met were for, and what each has changed: the
// lead and the user decide by that what becomes of it. It is "" for a task that has met nothing or that is not given up
// yet.
func (x explainer) bothSides(ctx context.Context, w *work, tip string, d board.Details) (string, error) {
	isLast, met := board.LastReturn(w.task, d)
	if !isLast || len(met) == 0 {
		return "", nil
	}
	base, err := w.leftAt(ctx, x.repo, tip)
	if err != nil {
		return "", err
	}
	own, err := treediff.DiffOf(ctx, x.repo, base, w.head)
	if err != nil {
		return "", err
	}
	t := w.task
	var b strings.Builder
	fmt.Fprintf(&b, "Task %d %q of %s, which came back:\n", t.ID, t.Subject, t.Owner)
	writeSide(&b, t.Description, w.summary, text.Clean(strings.ToValidUTF8(own.Text, "?")),
		fmt.Sprintf("muster diff %d", t.ID))
	met = slices.Clone(met) // it may be the task's own
	slices.Reverse(met)
	for _, commit := range met[:min(len(met), maxSides)] {
		if err := x.writeLanded(ctx, &b, commit); err != nil {
			return "", err
		}
	}
	for _, commit := range met[min(len(met), maxSides):] {
		fmt.Fprintf(&b, "\nIt has met git show %.7s, too.\n", commit)
	}
	return b.String(), nil
}

// writeLanded writes the side of a landed commit. One that is gone has none.
func (x explainer) writeLanded(ctx context.Context, b *strings.Builder, commit string) error {
	message, err := x.repo.Run(ctx, x.repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", commit)
	if err != nil {
		return ctx.Err() // git does not have it any more
	}
	c, ok := readLanded(commit, message)
	if !ok {
		return nil
	}
	description := ""
	if id, err := strconv.Atoi(c.task); err == nil {
		if t, err := x.board.Get(ctx, muster.TaskID(id)); err == nil && t.Landed != nil && t.Landed.Commit == commit {
			description = t.Description
		}
	}
	diff, err := x.diffOf(ctx, commit, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\nIt collides with %s, which has landed:\n", c)
	writeSide(b, description, c.summary, diff, fmt.Sprintf("git show %.7s", commit))
	return nil
}

// writeSide writes what one side was for, and what it has changed. command shows all of a difference that is cut.
func writeSide(b *strings.Builder, description, summary, diff, command string) {
	if description = strings.TrimSpace(description); description != "" {
		fmt.Fprintf(b, "%s\n", text.CutBytes(text.Clean(description), maxSideText))
	}
	fmt.Fprintf(b, "Its owner says: %s\n", cmp.Or(text.CutBytes(text.OneLine(summary), maxSideText), "nothing"))
	if len(diff) > maxDiff {
		diff = strings.ToValidUTF8(diff[:maxDiff], "") + fmt.Sprintf("\n... all of it: %s\n", command)
	}
	b.WriteString(diff)
}
