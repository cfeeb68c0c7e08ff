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

// Where packs have gathered, git repacks by the user's settings. A pack that the user keeps stays.
func TestTidy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		packs          int // of 6
	}{
		{"few packs", "autoPackLimit = 6", 6},
		{"many packs", "autoPackLimit = 4", 2},
		{"the user has forbidden it", "autoPackLimit = 4\n\tauto = 0", 6},
		{"the user's git maintains in other ways", "autoPackLimit = 4\n[maintenance]\n\tauto = false", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPacked(t)
			config := gittest.Read(t, p.root, ".git/config") + "[gc]\n\tautoDetach = false\n\t" + c.settings + "\n"
			gittest.Write(t, p.root, map[string]string{".git/config": config})
			p.repo = open(t, p.root)
			kept := p.pack("kept")
			gittest.Write(t, p.root, map[string]string{".git/objects/pack/" + kept + ".keep": ""})
			for i := range 4 {
				p.pack(fmt.Sprint("file", i))
			}
			require.NoError(t, p.repo.Tidy(t.Context()))
			if got := p.packs(); len(got) != c.packs || !slices.Contains(got, kept) {
				t.Errorf("%v, want %d with %v", got, c.packs, kept)
			}
			p.check()
		})
	}
}

// Several processes pack while the user's git repacks everything in other ways. No object is lost.
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
				if err != nil {
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

// A process that packs and moves refs is killed at each step. Nothing is lost.
func TestKilledWhilePacking(t *testing.T) {
	t.Parallel()
	if !failpoint.Enabled {
		t.Skip("needs -tags failpoint")
	}
	p := newPacked(t)
	for _, point := range []string{"objects.packed", "refs.begin:2", "refs.moved:2"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PACKS_TO_KILL="+p.root, faultinject.Variable+"=kill:"+point)
		if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
			t.Fatalf("not killed at %s: %v\n%s", point, err, out)
		}
		p.complete()
	}
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
		err = pack(ctx, repo, tip, name)
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

// Objects are borrowed from where alternates and links lead, however many are on the way.
func TestBorrowed(t *testing.T) {
	base, err := filepath.EvalSymlinks(gittest.Repo(t, map[string]string{"a": "a"}))
	require.NoError(t, err)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	gittest.Git(t, dir, "clone", "-q", "--shared", base, at("shared"))
	gittest.Git(t, dir, "clone", "-q", "--shared", at("shared"), at("again"))
	gittest.Git(t, dir, "clone", "-q", base, at("linked"))
	require.NoError(t, errors.Join(os.Rename(at("linked/.git/objects"), at("elsewhere")), os.Symlink(at("elsewhere"), at("linked/.git/objects"))))
	gittest.Git(t, dir, "clone", "-q", base, at("round"))
	gittest.Write(t, dir, map[string]string{"round/.git/objects/info/alternates": "# itself, and nothing\n../../../round/.git/objects\n\n/nowhere\n"})
	own := filepath.Join(base, ".git/objects")
	for name, want := range map[string][]string{"shared": {at("shared/.git/objects"), own}, "again": {at("again/.git/objects"), at("shared/.git/objects"), own},
		"linked": {at("elsewhere")}, "round": {at("round/.git/objects")}} {
		r, err := git.Open(t.Context(), at(name))
		require.NoError(t, err)
		if got := r.Borrowed(); !slices.Equal(got, want) {
			t.Errorf("%s borrows of %q, want %q", name, got, want)
		}
	}
}
