package teammate

import (
	"context"
	"strings"
	"time"

	"muster/internal/prompt"
)

// conflicts returns the news of collisions. wrote says that the lane is to be looked at, in the background.
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

const lookPause = 20 // the pause between looks at the files, as a multiple of the time that a look takes

// lookAtFiles reports whether the files of the lane have changed since the last look. ok is false if it did not look:
// it looks rarely, unless isDue says that a limit depends on it.
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
