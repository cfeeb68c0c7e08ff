package git

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

const copiedName = "copied.json"

// Refresh lets the next command see the repository's refs as they are now. Refs that the place has made itself stay.
func (p *Place) Refresh() error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// What was copied last time tells a ref of the repository that is gone from one that the place has made.
	noted := p.copied()
	now := map[string]string{}
	refs := filepath.Join(p.repo.common, "refs")
	err = filepath.WalkDir(refs, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(file, ".lock") {
			return ignoreMissing(err)
		}
		data, err := durable.ReadRegular(file, maxRef)
		if err != nil {
			return ignoreMissing(err)
		}
		name := "refs" + filepath.ToSlash(strings.TrimPrefix(file, refs))
		now[name] = string(data)
		if noted[name] == now[name] || name == p.ref {
			return nil
		}
		return p.write(root, path.Join(gitName, name), data)
	})
	for _, name := range copies {
		if err == nil {
			err = p.copyFile(root, name, noted, now)
		}
	}
	// The lane's own branch is where the runtime has it, whatever a command has written there. It may be packed.
	if id, ok := p.repo.refValue(p.ref); ok && id != "" && err == nil {
		now[p.ref] = id + "\n"
		err = p.write(root, path.Join(gitName, p.ref), []byte(now[p.ref]))
	}
	for name, text := range noted {
		if _, is := now[name]; is || err != nil {
			continue
		}
		if data, readErr := p.read(path.Join(gitName, name), maxRef); readErr == nil && string(data) == text {
			err = root.Remove(path.Join(gitName, name))
		}
	}
	if err != nil || maps.Equal(noted, now) {
		return err
	}
	return p.saveCopied(now)
}

// copyFile copies a file of the repository's git directory where that has changed since the last time. The packed refs
// keep those that commands have packed.
func (p *Place) copyFile(root *os.Root, name string, noted, now map[string]string) error {
	from := filepath.Join(p.repo.common, filepath.FromSlash(name))
	to := path.Join(gitName, name)
	info, err := os.Stat(from)
	if err != nil {
		if noted[name] != "" {
			_ = root.RemoveAll(to)
		}
		return ignoreMissing(err)
	}
	// What the file says would be too much to note.
	if now[name] = fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano()); noted[name] == now[name] {
		return nil
	}
	data, err := readFile(from)
	if err != nil {
		return ignoreMissing(err)
	}
	if name == packedRefs {
		own := p.withOwnRefs(data)
		if err := p.write(root, packedCopied, data); err != nil {
			return err
		}
		data = own
	}
	return p.write(root, to, data)
}

// packedCopied is the name of the file with the repository's packed refs as commands got them last.
const packedCopied = "packed-refs.copied"

// withOwnRefs returns the packed refs of the repository with those that commands have packed: they are not in the copy
// of the last time.
func (p *Place) withOwnRefs(packed []byte) []byte {
	was, err := p.read(path.Join(gitName, packedRefs), MaxFile)
	copied, copyErr := p.read(packedCopied, MaxFile)
	if err != nil || copyErr != nil {
		return packed
	}
	all, before, own := parsePacked(string(packed)), parsePacked(string(copied)), false
	for ref, id := range parsePacked(string(was)) {
		if before[ref] == "" && all[ref] == "" {
			all[ref], own = id, true
		}
	}
	if !own {
		return packed
	}
	text := "# pack-refs with: sorted \n"
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		text += all[ref] + " " + ref + "\n"
	}
	return []byte(text)
}

// TakeBranch brings the lane's branch to the repository where commands have moved it, with the commits that are new.
// Every command that writes there should have ended. It does nothing in a scratch checkout.
func (p *Place) TakeBranch(ctx context.Context) error {
	if p.ref == "" {
		return nil
	}
	data, err := p.read(path.Join(gitName, p.ref), maxRef)
	if errors.Is(err, fs.ErrNotExist) { // a command may have packed it
		packed, packedErr := p.read(path.Join(gitName, packedRefs), MaxFile)
		data, err = []byte(parsePacked(string(packed))[p.ref]), packedErr
	}
	if isSpoiled(err) { // Refresh puts it right
		return nil
	}
	// Only what a command has moved counts: the runtime may have moved the branch meanwhile.
	copied := p.copied()
	id, was := strings.TrimSpace(string(data)), strings.TrimSpace(copied[p.ref])
	if err != nil || id == was || was == "" || id == "" || !IsID(id) {
		return ignoreMissing(err)
	}
	if now, ok := p.repo.refValue(p.ref); !ok || now != id { // an earlier call may have moved it
		if err := p.TakeObjects(ctx, []string{id}, p.Have()); err != nil {
			return err
		}
		err = p.repo.UpdateRefs(ctx, []RefUpdate{{Ref: p.ref, New: id, Old: was}})
		if errors.Is(err, muster.ErrStale) {
			return muster.Errorf(muster.Invalid, "the lane's branch was moved while the command ran, so its commits "+
				"are at %.7s only", id).WithHint("git merge %.7s, in the lane", id)
		}
		if err != nil {
			return err
		}
	}
	if err := p.showBranch(ctx); err != nil {
		return err
	}
	// Should the runtime move the branch back to where it was before, the next call must not move it again.
	copied[p.ref] = id + "\n"
	return p.saveCopied(copied)
}

// Have returns commits that the repository has, the lane's branch first.
func (p *Place) Have() (ids []string) {
	const most = 500 // that are named to git
	copied := p.copied()
	for _, ref := range append([]string{p.ref}, slices.Sorted(maps.Keys(copied))...) {
		id := strings.TrimSpace(copied[ref])
		isOurs := strings.HasPrefix(ref, "refs/heads/") || strings.HasPrefix(ref, "refs/muster/")
		if isOurs && id != "" && IsID(id) && !slices.Contains(ids, id) && len(ids) < most {
			ids = append(ids, id)
		}
	}
	return ids
}

// showBranch gives the registered worktree the index of the lane's branch: the user's own git looks there. Where that
// git is at work at this moment, the index stays as it is.
func (p *Place) showBranch(ctx context.Context) error {
	admin := registrationOf(p.repo.common, p.Tree)
	index := indexOf(admin)
	_, err := p.repo.Do(ctx, Call{Dir: p.repo.common, Env: index, Args: []string{"read-tree", p.ref}})
	if err == nil {
		made := readLine(filepath.Join(admin, placeMark))
		err = p.repo.hideRepositories(ctx, index, cmp.Or(MadeAt(p.repo, p.ref), made))
	}
	file := filepath.Join(admin, "index")
	switch {
	case !isExit(err):
		return err
	case durable.IsMissing(file + ".lock"): // without an index the user's git enters no other repository
		return ignoreMissing(os.Remove(file))
	}
	return nil
}

func indexOf(admin string) []string {
	return []string{"GIT_INDEX_FILE=" + filepath.Join(admin, "index")}
}

// hideRepositories takes out of an index the links to other repositories that are no submodules of a commit, which is
// older than all that members have made: the user's git would obey what a member has written there.
func (r *Repo) hideRepositories(ctx context.Context, index []string, commit string) error {
	const gitlink = "160000 "
	out, err := r.Do(ctx, Call{Dir: r.common, Env: index, Args: []string{"ls-files", "-z", "--stage"}})
	if err != nil || !strings.Contains("\x00"+out, "\x00"+gitlink) {
		return err
	}
	known, err := Submodules(ctx, r, commit)
	if err != nil {
		return err
	}
	remove := ""
	for _, entry := range SplitNUL(out) {
		meta, path, _ := strings.Cut(entry, "\t")
		if strings.HasPrefix(meta, gitlink) && known[path] == "" {
			id := strings.Fields(meta)[1]
			remove += "0 " + strings.Repeat("0", len(id)) + "\t" + path + "\x00"
		}
	}
	_, err = r.Do(ctx, Call{Dir: r.common, Env: index, Stdin: remove,
		Args: []string{"update-index", "-z", "--index-info"}})
	return err
}

// copied returns the refs that Refresh has copied, with what their files said. There are none where that is not known:
// more stays then than need be, and nothing is taken over.
func (p *Place) copied() map[string]string {
	noted := map[string]string{}
	if data, err := p.read(copiedName, 16<<20); err == nil {
		_ = json.Unmarshal(data, &noted)
	}
	return noted
}

func (p *Place) saveCopied(noted map[string]string) error {
	data, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return durable.New(durable.OS{}).Replace(filepath.Join(p.Dir, copiedName), data)
}

// parsePacked reads packed refs: lines "ID REF", beside comments and the peeled ids of tags.
func parsePacked(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if id, ref, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && IsID(id) && id != "" {
			all[ref] = id
		}
	}
	return all
}
