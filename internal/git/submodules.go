package git

import (
	"context"
	"strings"
)

const modulePaths = `^submodule\..*\.path$`

// Submodules returns the names of the submodules that the .gitmodules of a commit of the repository names, by path.
func Submodules(ctx context.Context, r *Repo, commit string) (map[string]string, error) {
	if commit == "" {
		return nil, nil
	}
	blob := commit + ":.gitmodules"
	if _, err := r.Run(ctx, r.common, "cat-file", "-e", blob); err != nil {
		if ExitCode(err) < 1 {
			return nil, err
		}
		return nil, nil // there is none
	}
	return parseModules(r.Run(ctx, r.common, "config", "-z", "--blob", blob, "--get-regexp", modulePaths))
}

// SubmodulesNow is Submodules for the file .gitmodules in the working tree of a place. dir is "" for its top, or a
// submodule.
func (p *Place) SubmodulesNow(ctx context.Context, dir string) (map[string]string, error) {
	return parseModules(p.Do(ctx, Call{Dir: dir, ReadsTree: true,
		Args: []string{"config", "-z", "-f", ".gitmodules", "--get-regexp", modulePaths}}))
}

func parseModules(out string, err error) (map[string]string, error) {
	if err != nil && ExitCode(err) != 1 { // 1: there are none
		return nil, err
	}
	names := map[string]string{}
	for _, entry := range SplitNUL(out) {
		key, path, _ := strings.Cut(entry, "\n")
		names[path] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
	}
	return names, nil
}
