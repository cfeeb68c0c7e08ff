package team

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/recording"
	"muster/internal/transcript"
	"muster/llm"
)

// LandedFiles returns the paths of the files that a landed commit has changed.
func LandedFiles(ctx context.Context, t *Team, commit string) ([]string, error) {
	repo, err := t.services().Repo(ctx)
	if err != nil {
		return nil, err
	}
	return gitRepository{Repo: repo}.LandedFiles(ctx, commit)
}

// NewScratch makes a repository in the directory to, which must be empty, in which a run that began in the repository
// of dir can begin again: its base is checked out, and its target is there.
func NewScratch(ctx context.Context, dir, to string, run muster.Run) error {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return err
	}
	return git.NewScratch(ctx, repo, to, run.Base, run.Target)
}

// PutTasks puts tasks on the board of a team in which nothing was done yet, with their ids.
func PutTasks(ctx context.Context, t *Team, tasks []muster.Task) error {
	table := t.services().Store().Table(muster.TableTasks)
	for _, task := range tasks {
		data, err := muster.Encode(task)
		if err == nil {
			_, err = table.Put(ctx, strconv.Itoa(int(task.ID)), data, muster.Rev(""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PutConversations writes what the members of a recording have said, and what they were told, to the transcripts of a
// team in which nothing was said yet. A request that was made shorter repeats what was said before, so each part of
// what a member was told is taken once.
func PutConversations(ctx context.Context, t *Team, calls []*recording.Call) error {
	log, seen := t.services().Store().Log(), map[string]bool{}
	for _, c := range calls {
		if c.Of != "" || c.Purpose != "" { // of a subagent, or of a summary
			continue
		}
		// Two replies may be the same, and each was given.
		add := func(e transcript.Entry) error {
			key, err := json.Marshal(e.Message)
			// A part is known by its member and by all that it says: ids of calls are in it, so that two results of
			// different calls are never taken for one.
			if err != nil || seen[string(c.Member)+string(key)] && e.Kind != transcript.KindReply {
				return err
			}
			seen[string(c.Member)+string(key)] = true
			line, err := muster.MarshalLine(e)
			if err == nil {
				_, err = log.Append(ctx, transcript.Stream(c.Member), muster.Anywhere, line)
			}
			return err
		}
		for _, m := range c.Messages {
			if m.Role == llm.Assistant { // it was the reply to the call before
				continue
			}
			// A result is an entry of its own, as in the transcript of a member at work.
			for _, p := range m.Parts {
				kind := transcript.KindUser
				if _, isResult := p.(llm.Result); isResult {
					kind = transcript.KindResult
				}
				one := &llm.Message{Role: m.Role, Parts: llm.Parts{p}}
				if err := add(transcript.Entry{Kind: kind, At: c.At - c.Seconds, Message: one}); err != nil {
					return err
				}
			}
		}
		// A request that failed has no reply. A note says why, because the member goes on without having said anything.
		e := transcript.Entry{Kind: transcript.KindMark, At: c.At}
		if c.Error != nil {
			e.Text = "the model failed: " + strings.TrimSpace(cmp.Or(c.Error.Text, string(c.Error.Kind)))
		} else {
			r := c.Reply
			e.Kind, e.Message, e.Stop, e.Usage, e.Model = transcript.KindReply, &r.Message, r.Stop, &r.Usage, r.Model
		}
		if err := add(e); err != nil {
			return err
		}
	}
	return nil
}
