package git

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// Blobs returns the content of the files that names name to git: by their ids, or as TREE:PATH. A file that is larger
// than most, one that would make it more than all bytes together, and what is no file are left out.
func Blobs(ctx context.Context, r *Repo, names []string, most, all int64) (map[string][]byte, error) {
	ask := func(what string, names []string) (string, error) {
		if len(names) == 0 {
			return "", nil
		}
		return r.Do(ctx, Call{Dir: r.common, Bare: true, Stdin: strings.Join(names, "\n") + "\n",
			Args: []string{"cat-file", what}})
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == "" || strings.ContainsAny(name, "\n\x00")
	})
	// The sizes come first: git writes out whatever it is asked for.
	out, err := ask("--batch-check", names)
	if err != nil {
		return nil, err
	}
	type blob struct {
		name, head string // head is a line: ID TYPE SIZE
		size       int
	}
	var blobs []blob
	var ids []string
	for i, head := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		f := strings.Fields(head)
		if i >= len(names) || len(f) != 3 || f[1] != "blob" || !IsID(f[0]) {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && int64(size) <= min(most, all) {
			all -= int64(size)
			blobs, ids = append(blobs, blob{names[i], head, size}), append(ids, f[0])
		}
	}
	if out, err = ask("--batch", ids); err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, b := range blobs {
		head, rest, _ := strings.Cut(out, "\n")
		if head != b.head || b.size >= len(rest) {
			break
		}
		found[b.name], out = []byte(rest[:b.size]), rest[b.size+1:]
	}
	return found, nil
}
