package git

import (
	"context"
	"os"
	"strings"

	"muster"
)

// Whom the runtime commits as when the user has not told git who they are.
const (
	ownName  = "muster"
	ownEmail = "muster@localhost"
)

// Identity is whom the runtime commits as: the user as git knows them, else muster <muster@localhost>.
func (r *Repo) Identity(context.Context) (name, email string) { return r.name, r.email }

// readIdentity asks once, when the repository is opened: what an agent later writes into its config signs no commit of
// the runtime.
func (r *Repo) readIdentity(ctx context.Context) error {
	name, err := r.who(ctx, "user.name", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
	if err != nil {
		return err
	}
	email, err := r.who(ctx, "user.email", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", "EMAIL")
	if err != nil {
		return err
	}
	if name == "" || email == "" {
		name, email = ownName, ownEmail
	}
	r.name, r.email = name, email
	r.base = append(r.base, "GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+email,
		"GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+email)
	return nil
}

func (r *Repo) who(ctx context.Context, key string, vars ...string) (string, error) {
	for _, v := range vars[:2] {
		if s := strings.TrimSpace(os.Getenv(v)); s != "" {
			return s, nil
		}
	}
	out, err := r.Run(ctx, r.common, "config", "--get", key)
	if err != nil && code(err) != 1 { // 1: not set
		return "", muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	if s := strings.TrimSpace(out); s != "" || len(vars) < 3 {
		return s, nil
	}
	return strings.TrimSpace(os.Getenv(vars[2])), nil
}
