package landingagent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster"
	"muster/internal/landing"
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/internal/treediff"
	"muster/llm"
	"muster/tool"
)

// maxComments and maxComment limit what an owner reads of a review.
const (
	maxComments = 50
	maxComment  = 2000 // bytes
)

// reviewTries is how many conversations a review has: one that came to no verdict is begun again once.
const reviewTries = 2

// errNoVerdict is the error of a reviewer that has ended without an answer.
var errNoVerdict = errors.New("it has ended without a verdict")

// Review returns what the agent says of the work. The error says why there is no verdict. Nothing is approved then.
func (a Agent) Review(ctx context.Context, r landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
	message, err := a.reviewMessage(r)
	if err != nil {
		return v, err
	}
	for range reviewTries {
		d := &decision{request: r}
		err = a.converse(ctx, d, message)
		if d.verdict != nil && ctx.Err() == nil {
			d.verdict.Model = a.ModelName
			return *d.verdict, nil
		}
		if err == nil {
			err = errNoVerdict
		}
		// What the model's server refuses, it refuses again: whoever has made the model has tried again already.
		if ctx.Err() != nil || !errors.Is(err, errNoVerdict) && !errors.Is(err, errTurns) {
			break
		}
	}
	return landing.ReviewVerdict{Model: a.ModelName}, err
}

// reviewMessage returns what a reviewer is told first.
func (a Agent) reviewMessage(r landing.ReviewRequest) (string, error) {
	diff, err := a.difference(r.Diff)
	if err != nil {
		return "", err
	}
	t := r.Task
	return fmt.Sprintf("Work on task #%d, by %s, is ready to land. Review it.\n", t.ID, t.Owner) +
		prompt.Material("the task", taskText(t.Subject, t.Description)) + "\n" +
		prompt.Material("its owner's summary", text.CutBytes(r.Summary, maxText)) + "\n" +
		checkedText(r.Checked) + diff, nil
}

// taskText returns a task's subject and description, within the limit.
func taskText(subject, description string) string {
	return strings.TrimSpace(subject + "\n\n" + text.CutBytes(description, maxText))
}

// checkedText says what the check has said of the work. It never says more than the receipt: a reviewer that believes
// work to be verified looks less closely.
func checkedText(l muster.Landed) string {
	switch {
	case l.Receipt == muster.ReceiptUnchecked || l.Check == "":
		return "No check has verified it.\n"
	case l.Receipt == muster.ReceiptStillRed:
		return fmt.Sprintf("The check (%s) is red with it, as it was before.\n", l.Check)
	case l.Flaky:
		return fmt.Sprintf("The check (%s) failed on it, and passed when it ran again.\n", l.Check)
	}
	return fmt.Sprintf("The check (%s) has passed on it, merged with the target, in %.1f s.\n", l.Check, l.Seconds)
}

// difference returns a difference as an agent reads it. A long one is cut, and whole in a file.
func (a Agent) difference(d treediff.Diff) (string, error) {
	files := ""
	for _, f := range d.Files {
		if f.Binary {
			files += fmt.Sprintf("%s (binary)\n", text.OneLine(f.File))
			continue
		}
		files += fmt.Sprintf("%s (+%d -%d)\n", text.OneLine(f.File), f.Added, f.Deleted)
	}
	diff := text.Clean(strings.ToValidUTF8(d.Text, "?"))
	where := ""
	if len(diff) > maxDiff && a.KeepDiff != nil {
		file, err := a.KeepDiff(diff)
		if err != nil {
			return "", err
		}
		where = fmt.Sprintf("The difference is long. All of it is in %s; this is its beginning.\n", file)
	}
	return prompt.Material("the files that it changes", text.CutBytes(files, maxText)) + "\n" + where +
		prompt.Material("the difference", text.CutBytes(diff, maxDiff)), nil
}

// decision takes the verdict of one conversation. A review that is begun again has another one, so that a verdict is
// always of a conversation that has read the work.
type decision struct {
	request landing.ReviewRequest
	verdict *landing.ReviewVerdict // nil: none yet
}

// verdictInput is the input of verdict.
type verdictInput struct {
	Verdict  string        `json:"verdict"`
	Comments []lineComment `json:"comments,omitempty"`
	Text     string        `json:"text,omitempty" jsonschema:"about the whole"`
}

// lineComment is a comment in it. A comment that is put beside the work, and not at a place in it, sends its owner to
// search, so a line that is not there is refused.
type lineComment struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// tool returns the tool with which the agent answers.
func (d *decision) tool() llm.Tool {
	return tool.Func("verdict", prompt.Tool("verdict"), d.decide, tool.Enum("verdict", "approve", "return"))
}

// decide takes a verdict, or says what is wrong with it. The first one counts.
func (d *decision) decide(ctx context.Context, in verdictInput) (string, error) {
	if d.verdict != nil {
		return "", muster.Errorf(muster.Invalid, "you have given your verdict")
	}
	v := landing.ReviewVerdict{Approved: in.Verdict == "approve", Text: cleanText(in.Text)}
	if len(in.Comments) > maxComments {
		return "", muster.Errorf(muster.Invalid, "%d comments are too many: give the %d that matter most",
			len(in.Comments), maxComments)
	}
	var wrong []string
	for _, c := range in.Comments {
		c.File = path.Clean(strings.TrimPrefix(c.File, "./"))
		if err := d.check(ctx, c); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s", c.File, c.Line, tool.ErrorText(err)))
			continue
		}
		v.Comments = append(v.Comments, landing.ReviewComment{File: c.File, Line: c.Line, Text: cleanText(c.Text)})
	}
	if len(wrong) > 0 {
		return "", muster.Errorf(muster.Invalid, "nothing is decided, because comments have no place:\n%s",
			strings.Join(wrong, "\n")).
			WithHint("lines are those of the file in the lane, as read_file numbers them; line 0 is the whole file")
	}
	if !v.Approved && len(v.Comments) == 0 && v.Text == "" {
		return "", muster.Errorf(muster.Invalid, "the owner has to know why: give comments")
	}
	d.verdict = &v
	return "Noted.", nil
}

// check refuses a comment without a text or a place.
func (d *decision) check(ctx context.Context, c lineComment) error {
	if strings.TrimSpace(c.Text) == "" {
		return muster.Errorf(muster.Invalid, "it says nothing")
	}
	if c.Line != 0 {
		_, err := d.request.Line(ctx, c.File, c.Line)
		return err
	}
	isChanged := func(f treediff.FileChange) bool { return f.File == c.File }
	if slices.ContainsFunc(d.request.Diff.Files, isChanged) { // also one that is deleted
		return nil
	}
	if _, err := d.request.Line(ctx, c.File, 1); errors.Is(err, muster.ErrNotFound) {
		return err
	}
	return nil
}

// cleanText returns text of the model as people and other models read it.
func cleanText(s string) string {
	return text.CutBytes(strings.TrimSpace(text.Clean(s)), maxComment)
}
