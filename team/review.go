package team

import (
	"muster"
	"muster/internal/paths"
	"muster/internal/roles"
)

// checkReviewer refuses a run whose work is to be reviewed by a role that there is not. An agent without a role would
// review as it likes.
func checkReviewer(c *Config, root paths.Dir) error {
	if c.Review == "" {
		return nil
	}
	if _, ok := roles.Named(c.roleFiles(root), c.Review); !ok {
		return muster.Errorf(muster.Invalid, "there is no role %s to review work before it lands", c.Review).
			WithHint("see those that there are: muster roles")
	}
	return nil
}
