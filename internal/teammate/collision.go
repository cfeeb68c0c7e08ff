package teammate

import (
	"context"
	"strings"
	"time"

	"muster/internal/prompt"
)

// conflicts has the member's lane looked at if wrote says that its files may have changed, and returns what the member
// is to hear of what was found since the last boundary. The look goes on in the background: it delays no turn.
func (c *claims) conflicts(ctx context.Context, wrote bool) (text string) {
	t, _ := c.CurrentTask()
	if wrote {
		c.collisions.Changed(t.Worktree)
	}
	if notices := c.collisions.Take(c.name, t.ID); len(notices) > 0 {
		run, err := c.run(ctx)
		c.diary.dropped(ctx, "reading the target for a reminder", err)
		text = prompt.Collisions(notices, t.ID, strings.TrimPrefix(run.Target, "refs/heads/"))
	}
	return text
}

// lookPause is how many times as long as a look at the files took none is taken: in a large lane it takes as long as
// git needs to look at each file.
const lookPause = 20

// lookAtFiles looks whether the files of the member's lane have changed since the last look. ok is false where it did
// not look: it looks rarely, unless isDue says that a limit depends on it.
func (c *claims) lookAtFiles(ctx context.Context, isDue bool) (changed, ok bool) {
	h := c.held.get()
	if h.task.Worktree == "" || !isDue && time.Since(h.lookedAt) < lookPause*h.lookTook {
		return false, false
	}
	began := time.Now()
	files, err := c.worktrees.Fingerprint(ctx, h.task.Worktree)
	c.diary.dropped(ctx, "looking at the files of the lane", err) // the tools tell the member what is wrong with it
	c.held.change(func(h *claim) {
		h.lookedAt, h.lookTook = time.Now(), time.Since(began)
		if err == nil {
			h.files = files
		}
	})
	return files != h.files, err == nil
}
