package git

import (
	"context"
	"strconv"
	"strings"
)

// Blobs returns the content of the files that names name to git: by their ids, or as TREE:PATH. A file that is larger
// than most, one that would make it more than all bytes together, and what is no file are left out.
func Blobs(ctx context.Context, r *Repo, names []string, most, all int64) (map[string][]byte, error) {
	blobs, asked := map[string][]byte{}, []string{}
	for _, name := range names {
		if name != "" && !strings.ContainsAny(name, "\n\x00") {
			asked = append(asked, name)
		}
	}
	if len(asked) == 0 {
		return blobs, nil
	}
	ask := func(what string, names []string) (string, error) {
		return r.Do(ctx, Call{Dir: r.common, Bare: true, Stdin: strings.Join(names, "\n") + "\n",
			Args: []string{"cat-file", what}})
	}
	// The sizes come first: git writes out whatever it is asked for.
	out, err := ask("--batch-check", asked)
	if err != nil {
		return nil, err
	}
	var ids, named []string
	for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		f := strings.Fields(line) // ID TYPE SIZE
		if i >= len(asked) || len(f) != 3 || f[1] != "blob" || !IsID(f[0]) {
			continue
		}
		if size, err := strconv.ParseInt(f[2], 10, 64); err == nil && size <= most && size <= all {
			all -= size
			ids, named = append(ids, f[0]), append(named, asked[i])
		}
	}
	if len(ids) == 0 {
		return blobs, nil
	}
	if out, err = ask("--batch", ids); err != nil {
		return nil, err
	}
	for _, name := range named {
		head, rest, _ := strings.Cut(out, "\n")
		f := strings.Fields(head)
		if len(f) != 3 {
			break
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size >= len(rest) {
			break
		}
		blobs[name], out = []byte(rest[:size]), rest[size+1:]
	}
	return blobs, nil
}
