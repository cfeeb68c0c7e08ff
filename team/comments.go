package team

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/internal/transcript"
	"muster/internal/treediff"
	"muster/internal/workspace"
)

// Comment is what the user has said about a line of a task's work. It is a mail, and is read from there.
type Comment struct {
	File   string      `json:"file"`
	Line   int         `json:"line"`   // as it was numbered then
	Quoted string      `json:"quoted"` // the line as it was then, without indentation and cut
	Text   string      `json:"text"`
	To     muster.Name `json:"to"`
	At     float64     `json:"at"`
	// Row is the line of the text of the difference, from 0, that it is about; -1: the difference does not have it.
	Row int `json:"row"`
}

// commentHead is what the mail of a comment begins with.
const commentHead = "Review of "

// commentMail returns the text of the mail. about says which task it is.
func commentMail(about string, c Comment) string {
	return fmt.Sprintf("%s%s\n%s:%d: %s\n%s", commentHead, about, c.File, c.Line, c.Quoted, c.Text)
}

// commentPattern matches what commentMail returns.
var commentPattern = lazyregexp.New(`(?s)^` + commentHead + `(?:your )?task #(\d+) \(.*?\)(?:, which [^\n]*)?` +
	`\n([^\n]+?):(\d+): ([^\n]*)\n(.*)$`)

// commentOf returns the comment in a mail.
func commentOf(m muster.Message) (id muster.TaskID, c Comment, ok bool) {
	found := commentPattern().FindStringSubmatch(m.Content)
	if m.From != muster.User || found == nil {
		return 0, c, false
	}
	task, errTask := strconv.Atoi(found[1])
	line, errLine := strconv.Atoi(found[3])
	c = Comment{File: found[2], Line: line, Quoted: found[4], Text: found[5], To: m.To, At: m.At, Row: -1}
	return muster.TaskID(task), c, errTask == nil && errLine == nil
}

// quote returns a line as a comment quotes it.
func quote(line string) string { return text.CutBytes(text.OneLine(line), 300) }

// commentsOn returns the comments on a task's work that members and the lead have got, in the order of time.
func commentsOn(ctx context.Context, w *workspace.Workspace, id muster.TaskID) (all []Comment, err error) {
	members, err := w.Roster(ctx).List(ctx)
	if err != nil {
		return nil, err
	}
	boxes := []muster.Name{muster.Lead} // it has mail before it is there
	for _, m := range members {
		boxes = append(boxes, m.Name)
	}
	seen := map[muster.MessageID]bool{}
	add := func(mail []muster.Message) {
		for _, m := range mail {
			if of, c, ok := commentOf(m); ok && of == id && !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, c)
			}
		}
	}
	for _, box := range boxes {
		pending, _, _, err := w.Mail(ctx).Peek(ctx, box, 0, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		add(pending)
		for rec, err := range w.Store().Log().Read(ctx, transcript.Stream(box), 0) {
			if err != nil && !errors.Is(err, muster.ErrCorrupt) {
				return nil, err
			}
			// A transcript is long, and few of its entries are mail of this kind.
			var e struct {
				Delivered []muster.Message `json:"delivered"`
			}
			if bytes.Contains(rec.Data, []byte(commentHead)) && json.Unmarshal(rec.Data, &e) == nil {
				add(e.Delivered)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Comment) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

// locate sets the rows of comments. A line may have moved since: of those that read as it did the nearest counts.
func locate(d treediff.Diff, comments []Comment) {
	distance := make([]int, len(comments))
	for row, line := range d.Lines() {
		for i := range comments {
			c, far := &comments[i], max(line.New-comments[i].Line, comments[i].Line-line.New)
			if line.New > 0 && c.File == line.File && (c.Row < 0 || far < distance[i]) && c.Quoted == quote(line.Text) {
				c.Row, distance[i] = row, far
			}
		}
	}
}
