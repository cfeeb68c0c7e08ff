package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
)

// A pull request is made in these steps, each of which can be repeated:
//
//  1. The target must be where landings left it. What something else has moved was checked by nobody.
//  2. The text is made of the run's record, the board and the ledger. Nothing is asked of a model.
//  3. The user's own git pushes the target, with their hooks and their key. Nothing is forced: a branch of the same
//     name that has something else is refused by the server.
//  4. The tool of the server opens the request, with the user's own login.
//
// Text of tasks may be hostile: it may look like options or like commands of a shell. So each text is one argument that
// begins with the name of its option, or is read from standard input.

// PullRequest asks a server to merge the target into a branch. Its texts are those of tasks and models: they are data,
// and no shell ever reads them.
type PullRequest struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Head  string `json:"head"` // the target
	Base  string `json:"base"` // the branch that is to have the work
	URL   string `json:"url,omitempty"`
}

// PullRequest describes what has landed for those who are to review it. base is the branch that is to have the work; ""
// is the one of the user's checkout. spent says what it has cost. Nothing is changed or sent.
func (s Target) PullRequest(ctx context.Context, base, spent string) (pr PullRequest, err error) {
	w := s.now().workspace
	run, l, err := s.last(ctx)
	if err != nil {
		return pr, err
	}
	// The record of the run is a claim: no branch is pushed that only the record names.
	if err := workspace.ConfirmTarget(ctx, w, run.Team, run.Target, ""); err != nil {
		return pr, err
	}
	state, err := l.State(ctx)
	if err == nil {
		err = errDisplaced(state)
	}
	if err != nil {
		return pr, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return pr, err
	}
	if base == "" {
		ref, err := repo.CurrentBranch(ctx)
		if base = strings.TrimPrefix(ref, "refs/heads/"); err != nil || base == "" || base == run.Target {
			return pr, cmp.Or(err, error(muster.Errorf(muster.Invalid, "which branch is to have the work is not clear").
				WithHint("muster pr --base BRANCH")))
		}
	}
	tasks, err := w.Board().List(ctx)
	return PullRequest{Title: titleOf(run), Body: body(run, tasks, spent), Head: run.Target,
		Base: base}, err
}

func titleOf(run muster.Run) string {
	title, _, _ := strings.Cut(strings.TrimSpace(run.Goal), "\n")
	return text.CutColumns(text.OneLine(title), 72)
}

// body returns the text of a pull request: the goal, what has landed with its receipts, what is not done, the cost. All
// of it comes from records; only the goal and the summaries are somebody's words.
func body(run muster.Run, tasks []muster.Task, spent string) string {
	var landed, open strings.Builder
	for _, t := range tasks {
		switch {
		case !run.Has(t):
		case t.Landed != nil:
			fmt.Fprintf(&landed, "- %s (%.7s, %s)\n", text.OneLine(t.Subject), t.Landed.Commit,
				text.OneLine(t.Landed.Receipt))
			if t.Result != "" {
				fmt.Fprintf(&landed, "  %s\n", text.OneLine(t.Result))
			}
		case t.Open() || t.Status == muster.NeedsAttention:
			is := view.TaskWord(t)
			if t.Status == muster.NeedsAttention && t.Result != "" {
				is = text.OneLine(t.Result)
			}
			fmt.Fprintf(&open, "- %s: %s\n", text.OneLine(t.Subject), is)
		}
	}
	words := strings.TrimSpace(text.Clean(run.Goal)) + "\n"
	if words == titleOf(run)+"\n" {
		words = "" // the title says all of it
	}
	for _, part := range []struct{ title, text string }{
		{"Landed", landed.String()}, {"Not done", open.String()}, {"Check", text.OneLine(run.Check)}, {"Cost", spent},
	} {
		if part.text != "" {
			words += fmt.Sprintf("\n## %s\n\n%s\n", part.title, strings.TrimSpace(part.text))
		}
	}
	return strings.TrimPrefix(words, "\n")
}

// Open pushes the target to the remote origin, as the user, and opens the pull request by gh or glab, whichever fits
// the remote. environ is what these see: they need the user's keys, as the user's own git does. The tool is looked for
// first, so that nothing is pushed where it is missing.
//
// Errors: NotFound, with what to type, where there is no remote or no tool; Unavailable where the server has refused.
// After the latter the call can be repeated: what was pushed is not pushed a second time.
func (s Target) Open(ctx context.Context, pr *PullRequest, environ []string) error {
	if err := s.now().workspace.PrepareChange(ctx); err != nil {
		return err
	}
	repo, err := s.now().workspace.Repo(ctx)
	if err != nil {
		return err
	}
	// The name of the remote's host decides. Who has a GitLab under another name opens the request by hand.
	remote, err := git.RunAsUser(ctx, repo.Root(), nil, "remote", "get-url", "origin")
	if err != nil {
		return muster.Errorf(muster.NotFound, "there is no remote origin to push to").
			WithHint("git remote add origin URL, then again: muster pr --open")
	}
	tool, argv := "gh", []string{"pr", "create", "--head=" + pr.Head, "--base=" + pr.Base, "--title=" + pr.Title,
		"--body-file=-"}
	if strings.Contains(remote, "gitlab") {
		tool, argv = "glab", []string{"mr", "create", "--source-branch=" + pr.Head, "--target-branch=" + pr.Base,
			"--title=" + pr.Title, "--description=" + pr.Body, "--yes"}
	}
	// It is looked for in the PATH of this process, which is the user's.
	path, err := exec.LookPath(tool)
	if err != nil {
		return muster.Errorf(muster.NotFound, "%s is not installed, so nothing was pushed or opened", tool).
			WithHint("install it, or by hand:  git push -u origin %s", text.ShellQuote(pr.Head))
	}
	if said, err := git.RunAsUser(ctx, repo.Root(), nil, "push", "-q", "-u", "origin", pr.Head); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be pushed: %s", pr.Head, strings.TrimSpace(said)).
			WithHint("by hand:  git push -u origin %s", text.ShellQuote(pr.Head))
	}
	launcher, err := proc.New(ctx)
	if err != nil {
		return err
	}
	defer launcher.Close()
	// The body goes to standard input and not through a shell.
	var out strings.Builder
	p, err := launcher.Start(ctx, proc.Spec{Argv: append([]string{path}, argv...), Dir: repo.Root(), Env: environ,
		Stdin: strings.NewReader(pr.Body), Out: &out})
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	if err == nil && exit != 0 {
		err = errors.New(strings.TrimSpace(out.String()))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "%s has opened nothing: %w", tool, err).
			WithHint("%s is pushed; open it by hand, or again:  muster pr --open", pr.Head)
	}
	pr.URL = strings.TrimSpace(out.String())
	return nil
}
