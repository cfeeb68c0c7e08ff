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

// identity is whom the runtime commits as.
type identity struct{ name, email string }

// readIdentity returns the user as git knows them in dir, else muster <muster@localhost>. It is called once, when the
// repository is opened, so that what an agent later writes into the config signs no commit.
func (r *runner) readIdentity(ctx context.Context, dir string) (identity, error) {
	configured, err := r.Config(ctx, Call{Dir: dir, Upward: true}, `^user\.(name|email)$`)
	if err != nil {
		return identity{}, muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	who := identity{
		name: firstText(os.Getenv("GIT_AUTHOR_NAME"), os.Getenv("GIT_COMMITTER_NAME"), configured["user.name"]),
		email: firstText(os.Getenv("GIT_AUTHOR_EMAIL"), os.Getenv("GIT_COMMITTER_EMAIL"), configured["user.email"],
			os.Getenv("EMAIL")),
	}
	if who.name == "" || who.email == "" {
		who = identity{ownName, ownEmail}
	}
	return who, nil
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

// env is the environment that makes git commit as who.
func (who identity) env() []string {
	return []string{"GIT_AUTHOR_NAME=" + who.name, "GIT_AUTHOR_EMAIL=" + who.email,
		"GIT_COMMITTER_NAME=" + who.name, "GIT_COMMITTER_EMAIL=" + who.email}
}
