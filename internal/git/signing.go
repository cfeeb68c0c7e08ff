package git

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"muster"
)

// signing is how the user signs commits. It is read once, when the repository is opened, and from the user's own files
// only: the repository's config, which an agent can write, chooses neither a key nor a program.
type signing struct {
	isWanted bool // commit.gpgSign
	settings []Setting
}

func newSigning(values []scoped, as person) signing {
	own := map[string]string{}
	for _, v := range values {
		if v.isUsers() {
			own[v.key] = v.value
		}
	}
	format := cmp.Or(own["gpg.format"], "openpgp")
	openpgp := cmp.Or(own["gpg.openpgp.program"], own["gpg.program"], "gpg")
	isTrue := []string{"true", "yes", "on", "1"} // git's words for it
	s := signing{isWanted: slices.Contains(isTrue, strings.ToLower(own["commit.gpgsign"])), settings: []Setting{
		{"gpg.format", format}, {"gpg.program", openpgp}, {"gpg.openpgp.program", openpgp},
		{"gpg.ssh.program", cmp.Or(own["gpg.ssh.program"], "ssh-keygen")},
		{"gpg.x509.program", cmp.Or(own["gpg.x509.program"], "gpgsm")},
		{"gpg.ssh.defaultKeyCommand", own["gpg.ssh.defaultkeycommand"]}}}
	key := own["user.signingkey"]
	if key == "" && format != "ssh" { // without one git takes the committer
		key = as.name + " <" + as.email + ">"
	}
	if key != "" {
		s.settings = append(s.settings, Setting{"user.signingKey", key})
	}
	return s
}

// signTimeout is how long the signature of one commit may take. A program that waits for a passphrase or for a touch of
// a key has nobody to ask.
const signTimeout = 20 * time.Second

// Signs reports whether the user's git signs commits.
func Signs(r *Repo) bool { return r.signing.isWanted }

// SignedCommit is Repo.CommitTree with the user's signature. It asks nobody: a key that needs a passphrase which no
// agent program has is an error. Errors: Unavailable, with the reason, which is context.DeadlineExceeded where the
// program did not end, or the context's.
func SignedCommit(ctx context.Context, r *Repo, tree string, parents []string, message string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	id, err := r.commitTree(limited, Call{Args: []string{"commit-tree", "-S", "-F", "-", tree}, Stdin: message,
		Settings: r.signing.settings, Env: []string{"GPG_TTY=", "SSH_ASKPASS_REQUIRE=force"}}, tree, parents)
	switch {
	case err == nil || ctx.Err() != nil:
		return id, err
	case limited.Err() != nil:
		return "", muster.Errorf(muster.Unavailable, "the program that signs did not end within %v: %w", signTimeout,
			context.DeadlineExceeded)
	}
	return "", muster.Errorf(muster.Unavailable, "%s", reason(err))
}

// reason returns the line of git's error that says most: the first of what the signing program has said.
func reason(err error) string {
	for line := range strings.Lines(strings.TrimPrefix(err.Error(), "git commit-tree: ")) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "error: ")
		if line != "" && !strings.HasPrefix(line, "[GNUPG:]") && !strings.HasPrefix(line, "gpg failed to sign the") {
			return line
		}
	}
	return "the program that signs has failed and said nothing"
}
