package git

import (
	"cmp"
	"context"
	"os"
	"strings"

	"muster"
)

// The identity that the runtime commits as when the user has not told git who they are.
const (
	ownName  = "muster"
	ownEmail = "muster@localhost"
)

// readIdentity returns the environment that makes git commit as the user, whom git knows in dir, else as
// muster <muster@localhost>. It is called once, when the repository is opened, so that what an agent later writes into
// the config signs no commit.
func (r *runner) readIdentity(ctx context.Context, dir string) (env []string, err error) {
	configured, err := r.Config(ctx, Call{Dir: dir, Upward: true}, `^user\.(name|email)$`)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	// git takes a text of spaces for none.
	text := func(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }
	name := cmp.Or(text("GIT_AUTHOR_NAME"), text("GIT_COMMITTER_NAME"), strings.TrimSpace(configured["user.name"]))
	email := cmp.Or(text("GIT_AUTHOR_EMAIL"), text("GIT_COMMITTER_EMAIL"), strings.TrimSpace(configured["user.email"]),
		text("EMAIL"))
	if name == "" || email == "" {
		return identityEnv(ownName, ownEmail), nil
	}
	return identityEnv(name, email), nil
}

// identityEnv is the environment that makes git commit as that person.
func identityEnv(name, email string) []string {
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}
