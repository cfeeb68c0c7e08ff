package landing_test

import (
	"context"
	"strings"

	"muster/internal/landing"
)

// agents are those of a process: a reviewer, which returns what is shoddy.
func (m *machine) agents(l *life) landing.Agents {
	return landing.Agents{
		Review: func(_ context.Context, r landing.ReviewRequest) (landing.ReviewVerdict, error) {
			l.hit("landing.asked")
			var v landing.ReviewVerdict
			for _, f := range r.Diff.Files {
				if strings.HasPrefix(f.File, "shoddy-") {
					v.Comments = append(v.Comments, landing.ReviewComment{File: f.File, Line: 1, Text: "Do better."})
				}
			}
			v.Approved, v.Model = len(v.Comments) == 0, "m/1"
			return v, nil
		},
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
