package localfiles

import (
	"context"
	"path"
	"slices"
	"strings"

	"muster/internal/git"
)

// Names of files that projects keep out of git and need: anywhere, and in a directory for settings.
var (
	usual = []string{".env", ".env.*", ".envrc", "local.properties", "*.pem", "*.key", "*.crt", "*.p12", "*.pfx",
		"*.jks"}
	usualInConfig = []string{"*.local.*", "local.*", "*.local"}
	configDirs    = []string{"config", "configs", "conf", "settings"}
	certificates  = []string{"cert", "certs", "certificates", "ssl"}
)

// maxProposed is how many lines a proposal has.
const maxProposed = 20

// Propose returns the lines of a .worktreeinclude for the files of the user's checkout that git ignores and work seems
// to need. It does not look into directories that git ignores as a whole.
func Propose(ctx context.Context, repo *git.Repo) (patterns []string, err error) {
	out, err := repo.Do(ctx, git.Call{Dir: repo.Root(), Args: []string{"ls-files", "-z", "--others", "--ignored",
		"--exclude-standard", "--directory", "--no-empty-directory"}})
	if err != nil {
		return nil, err
	}
	for _, name := range git.SplitNUL(out) {
		// A line would need escapes for these.
		if isNeeded(name) && !strings.ContainsAny(name, "*?[\\\n") && strings.TrimSpace(name) == name {
			patterns = append(patterns, "/"+name)
		}
	}
	return patterns[:min(len(patterns), maxProposed)], nil
}

func isNeeded(name string) bool {
	dir, isDir := strings.CutSuffix(name, "/")
	base := path.Base(dir)
	if isDir {
		return slices.Contains(certificates, strings.TrimPrefix(base, "."))
	}
	isIn := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { is, _ := path.Match(p, base); return is })
	}
	return isIn(usual) || isIn(usualInConfig) && slices.Contains(configDirs, path.Base(path.Dir(name)))
}
