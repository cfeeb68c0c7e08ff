package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// packed is a repository whose packs are counted.
type packed struct {
	*testing.T
	root string
	repo *git.Repo
}

// newPacked makes a repository in which the user has packed their first commit.
func newPacked(t *testing.T) packed {
	root := gittest.Repo(t, map[string]string{"a": "a\n", "big": strings.Repeat("some text\n", 500)})
	gittest.Git(t, root, "gc", "-q")
	return packed{t, root, open(t, root)}
}

// commit makes a commit with one more file.
func (p packed) commit(name string) (head, base string) {
	p.Helper()
	base = gittest.Git(p, p.root, "rev-parse", "HEAD")
	gittest.Write(p, p.root, map[string]string{name: strings.Repeat(name+"\n", 100)})
	gittest.Git(p, p.root, "add", "-A")
	gittest.Git(p, p.root, "commit", "-q", "-m", name)
	return gittest.Git(p, p.root, "rev-parse", "HEAD"), base
}

// pack makes a commit with one more file, and a pack of it, whose name it returns.
func (p packed) pack(name string) string {
	p.Helper()
	was := p.packs()
	head, base := p.commit(name)
	require.NoError(p, p.repo.Pack(p.Context(), base, head))
	is := slices.DeleteFunc(p.packs(), func(pack string) bool { return slices.Contains(was, pack) })
	if len(is) != 1 {
		p.Fatalf("new packs: %v", is)
	}
	return is[0]
}

// packs returns the names of the packs.
func (p packed) packs() (names []string) {
	files, _ := filepath.Glob(filepath.Join(p.root, ".git/objects/pack/*.pack"))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".pack"))
	}
	return names
}

// complete fails when the repository lacks an object. What lies loose beside the packs is removed before, so that it
// hides nothing.
func (p packed) complete() {
	p.Helper()
	gittest.Git(p, p.root, "prune-packed")
	gittest.Git(p, p.root, "fsck", "--strict", "--full")
}

// check fails when the repository lacks an object or has something of a pack without the rest.
func (p packed) check() {
	p.Helper()
	p.complete()
	if out := gittest.Git(p, p.root, "count-objects", "-v"); !strings.Contains(out, "garbage: 0") {
		p.Error(out)
	}
}

func (p packed) path(name string) string { return filepath.Join(p.root, ".git/objects/pack", name) }

// A pack copies nothing that another pack has.
func TestAPackHasWhatNoOtherHas(t *testing.T) {
	t.Parallel()
	p := newPacked(t)
	p.pack("one")
	second, base := p.commit("two")
	for range 2 { // the second time there is nothing to pack
		require.NoError(t, p.repo.Pack(t.Context(), "", second))
		equal(t, "packs", len(p.packs()), 3)
	}
	all := strings.Count(gittest.Git(t, p.root, "rev-list", "--objects", "--all"), "\n") + 1
	if out := gittest.Git(t, p.root, "count-objects", "-v"); !strings.Contains(out, fmt.Sprintf("in-pack: %d\n", all)) {
		t.Errorf("of %d objects, some are in two packs: %s", all, out)
	}
	p.check()
	if err := p.repo.Pack(t.Context(), base, strings.Repeat("1", 40)); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("a missing commit: %v", err)
	}
}

// A pack stays when it has a .keep file, and when an index of several packs names it.
func TestAPackInUseStays(t *testing.T) {
	t.Parallel()
	for what, use := range map[string]func(p packed, pack string){
		"keep": func(p packed, pack string) {
			gittest.Write(p, p.root, map[string]string{".git/objects/pack/" + pack + ".keep": ""})
		},
		"index": func(p packed, _ string) { gittest.Git(p, p.root, "multi-pack-index", "write") },
		"chain": func(p packed, _ string) {
			gittest.Write(p, p.root, map[string]string{".git/objects/pack/multi-pack-index.d/x": ""})
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPacked(t)
			one := p.pack("one")
			use(p, one)
			p.pack("two")
			if err := p.repo.MergePacks(t.Context(), 2); err != nil || len(p.packs()) != 3 || !slices.Contains(p.packs(), one) {
				t.Errorf("%v, %v", p.packs(), err)
			}
		})
	}
}

// The packs that were noted become one. Those of the user, and those that are kept, stay.
func TestPacksAreMerged(t *testing.T) {
	t.Parallel()
	p := newPacked(t)
	users := p.packs()
	kept := p.pack("kept")
	gittest.Write(t, p.root, map[string]string{".git/objects/pack/" + kept + ".keep": ""})
	for i := range 5 {
		p.pack(fmt.Sprint("file", i))
	}
	p.commit("loose")
	if err := p.repo.MergePacks(t.Context(), 7); err != nil || len(p.packs()) != 7 {
		t.Errorf("%v, %v, with fewer than were asked for", p.packs(), err)
	}
	// What a removal that was killed leaves: a pack without its index.
	gone := p.pack("gone")
	gittest.Write(t, p.root, map[string]string{".git/muster/packs/pack-" + strings.Repeat("0", 40): "", ".git/muster/packs/odd": ""})
	copyPack(t, p, gone)
	for range 2 { // the second time there is nothing to do
		require.NoError(t, p.repo.MergePacks(t.Context(), 2))
		if got := p.packs(); len(got) != 3 || !slices.Contains(got, users[0]) || !slices.Contains(got, kept) {
			t.Errorf("%v, want %v, %v and one more", got, users, kept)
		}
	}
	p.check()
}

// copyPack leaves of a pack what a removal that was killed after its first step leaves: its objects are in another pack
// and its index is gone.
func copyPack(t *testing.T, p packed, pack string) {
	t.Helper()
	data := require.Value(os.ReadFile(p.path(pack + ".pack")))(t)
	left := "pack-" + strings.Repeat("1", 40)
	for _, file := range []string{p.path(left + ".pack"), filepath.Join(p.root, ".git/muster/packs", left)} {
		require.NoError(t, os.WriteFile(file, data, 0o444))
	}
}

// Several processes pack and merge while the user's git repacks everything in other ways. No object is lost.
func TestPacksBesideTheUsersGit(t *testing.T) {
	tier.All(t)
	t.Parallel()
	p := newPacked(t)
	_, tip := p.commit("base")
	var working, repacking sync.WaitGroup
	done := make(chan struct{})
	repacking.Go(func() {
		// One after the other: two of them at once lose objects, whoever else is there.
		for all := [][]string{{"gc", "-q"}, {"repack", "-A", "-d", "-q"}, {"repack", "-d", "-q", "--geometric=2"}}; ; all = append(all[1:], all[0]) {
			select {
			case <-done:
				return
			default:
				cmd := exec.Command("git", all[0]...)
				cmd.Dir = p.root
				_ = cmd.Run() // one may find that a pack is gone
			}
		}
	})
	for i := range 3 {
		repo := open(t, p.root) // as another process has it
		working.Go(func() {
			for n := range 8 {
				name := fmt.Sprintf("%d-%d", i, n)
				err := pack(t.Context(), repo, tip, name)
				for range 5 { // as a landing does: a prune removes a directory while git makes a file in it
					if err != nil {
						err = pack(t.Context(), repo, tip, name)
					}
				}
				if err := errors.Join(err, repo.MergePacks(t.Context(), 2)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	working.Wait()
	close(done)
	repacking.Wait()
	if n := gittest.Git(t, p.root, "for-each-ref", "--count=100", "refs/heads/b*"); strings.Count(n, "\n") != 23 {
		t.Errorf("refs:\n%s", n)
	}
	p.check()
}

// A process that packs and merges is killed at each step. Nothing is lost, and the next merge leaves one pack.
func TestKilledWhilePacking(t *testing.T) {
	t.Parallel()
	if !failpoint.Enabled {
		t.Skip("needs -tags failpoint")
	}
	p := newPacked(t)
	for _, point := range []string{"objects.packed", "packs.noted", "packs.merged", "packs.removing", "packs.removing:2",
		"refs.begin:2", "refs.moved:2"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PACKS_TO_KILL="+p.root, faultinject.Variable+"=kill:"+point)
		if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
			t.Fatalf("not killed at %s: %v\n%s", point, err, out)
		}
		p.complete()
	}
	require.NoError(t, p.repo.MergePacks(t.Context(), 2))
	notes, _ := os.ReadDir(filepath.Join(p.root, ".git/muster/packs"))
	if len(notes) != 1 {
		t.Errorf("%v are noted", notes)
	}
	p.complete()
}

// packUntilKilled is the process of TestKilledWhilePacking.
func packUntilKilled(root string) {
	ctx := context.Background()
	repo, err := git.Open(ctx, root)
	if err := errors.Join(err, faultinject.Arm()); err != nil {
		panic(err)
	}
	tip, err := repo.Resolve(ctx, "refs/heads/main")
	for n := 0; err == nil && n < 20; n++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), n)
		err = errors.Join(pack(ctx, repo, tip, name), repo.MergePacks(ctx, 3))
	}
	if err != nil {
		panic(err)
	}
}

// pack makes two commits on tip as a landing does, each in a pack before the ref names the second.
func pack(ctx context.Context, repo *git.Repo, tip, name string) error {
	tree, err := repo.Tree(ctx, tip)
	if err != nil {
		return err
	}
	one, err := repo.CommitTree(ctx, tree, []string{tip}, name+" 1")
	if err != nil {
		return err
	}
	if err := repo.Pack(ctx, tip, one); err != nil {
		return err
	}
	two, err := repo.CommitTree(ctx, tree, []string{one}, name+" 2")
	if err != nil {
		return err
	}
	if err = repo.Pack(ctx, tip, two); err != nil {
		return err
	}
	return repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: "refs/heads/b" + name, New: two}})
}
