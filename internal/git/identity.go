package git

import (
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
	name := firstText(os.Getenv("GIT_AUTHOR_NAME"), os.Getenv("GIT_COMMITTER_NAME"), configured["user.name"])
	email := firstText(os.Getenv("GIT_AUTHOR_EMAIL"), os.Getenv("GIT_COMMITTER_EMAIL"), configured["user.email"],
		os.Getenv("EMAIL"))
	if name == "" || email == "" {
		return identityEnv(ownName, ownEmail), nil
	}
	return identityEnv(name, email), nil
}

// firstText returns the first of the texts that has more than spaces, without the spaces around it.
func firstText(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}

// identityEnv is the environment that makes git commit as that person.
func identityEnv(name, email string) []string {
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}
