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

// readIdentity reads whom the runtime commits as: the user as git knows them, else muster <muster@localhost>. It is
// called once, when the repository is opened, so that what an agent later writes into the config signs no commit.
func readIdentity(ctx context.Context, r *Repo) error {
	name, err := r.identityPart(ctx, "user.name", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
	if err != nil {
		return err
	}
	email, err := r.identityPart(ctx, "user.email", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", "EMAIL")
	if err != nil {
		return err
	}
	if name == "" || email == "" {
		name, email = ownName, ownEmail
	}
	r.name, r.email = name, email
	r.env = append(r.env, identityEnv(name, email)...)
	return nil
}

// identityEnv is the environment that makes git commit as somebody.
func identityEnv(name, email string) []string {
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}

// identityPart reads a name or an email address: from the first two variables, from the config, or from the third
// variable if there is one. It is "" when the user has set none.
func (r *runner) identityPart(ctx context.Context, key string, vars ...string) (string, error) {
	for _, v := range vars[:2] {
		if s := strings.TrimSpace(os.Getenv(v)); s != "" {
			return s, nil
		}
	}
	out, err := r.Run(ctx, r.common, "config", "--get", key)
	if err != nil && exitCode(err) != 1 { // 1: not set
		return "", muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	if s := strings.TrimSpace(out); s != "" || len(vars) < 3 {
		return s, nil
	}
	return strings.TrimSpace(os.Getenv(vars[2])), nil
}
