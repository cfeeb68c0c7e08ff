package workspace

import (
	"context"

	"muster/internal/git"
)

// UserPager returns the pager of the user's or the system's git config; "" where neither names one. The config of a
// repository does not count: it would run a program.
func UserPager(ctx context.Context, environ []string) string {
	return git.UserConfig(ctx, environ, "core.pager")
}
