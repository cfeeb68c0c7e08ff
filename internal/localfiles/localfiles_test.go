package localfiles_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/localfiles"
	"muster/internal/redact"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func TestMain(m *testing.M) { gittest.Main(m) }

// open makes a repository, and writes files into its checkout.
func open(t *testing.T, tracked, untracked map[string]string) (root string, repo *git.Repo) {
	t.Helper()
	root = gittest.Repo(t, tracked)
	gittest.Write(t, root, untracked)
	return root, require.Value(git.Open(t.Context(), root))(t)
}

func read(t *testing.T, repo *git.Repo, patterns string) *localfiles.Set {
	t.Helper()
	return require.Value(localfiles.Read(t.Context(), repo, patterns))(t)
}

func TestFilesThatAreCopied(t *testing.T) {
	t.Parallel()
	root, repo := open(t, map[string]string{".gitignore": ".env*\nlocal/\n*.pem\nnode_modules\n.team\n", "app/a": "a\n", ".env.example": "x\n"},
		map[string]string{".env": "one\n", ".env.not": "no\n", "app/.env": "two\n", "local/a b/ä.yml": "three\n",
			"untracked": "no\n", ".team/x": "no\n", "inner/.git/HEAD": "no\n", "node_modules/p/i": "no\n"})
	gittest.Git(t, root, "add", "-f", ".env.example")
	for i := range 500 {
		gittest.Write(t, root, map[string]string{"node_modules/" + strings.Repeat("n", i%100+1) + "/" + strings.Repeat("m", i/100+1): "no\n"})
	}
	require.NoError(t, os.Symlink("../.env", root+"/app/in.pem"))
	require.NoError(t, os.Symlink("../outside", root+"/out.pem"))
	require.NoError(t, os.Truncate(root+"/local/a b/ä.yml", 5))
	s := read(t, repo, ".env*\n!.env.not\n# a comment\nlocal/\n*.pem\nnode_modules/\nuntracked\napp/a\n.team/\ninner/\n")
	want := []string{".env", "app/.env", "app/in.pem", "local/a b/ä.yml"}
	if got := s.Names(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if left := strings.Join(s.Left(), "\n"); !strings.Contains(left, "out.pem is not copied: it is a link") ||
		!strings.Contains(left, "node_modules/ is not copied: it has 501 files") {
		t.Errorf("left: %s", left)
	}

	dir := t.TempDir()
	gittest.Write(t, dir, map[string]string{"app/.env": "there\n"})
	written := require.Value(s.Put(dir))(t)
	if !slices.Equal(written, []string{".env", "app/in.pem", "local/a b/ä.yml"}) {
		t.Errorf("written %q", written)
	}
	for name, want := range map[string]string{".env": "one", "app/.env": "there", "app/in.pem": "one", "local/a b/ä.yml": "three"} {
		if got := strings.TrimSpace(gittest.Read(t, dir, name)); got != want {
			t.Errorf("%s has %q", name, got)
		}
	}
	require.NoError(t, localfiles.Remove(dir, written))
	if !durable.IsMissing(dir+"/local") || durable.IsMissing(dir+"/app/.env") {
		t.Error("what was written is not what was removed")
	}
	// What was read is what is copied, whatever becomes of the files.
	hash := s.Hash()
	gittest.Write(t, root, map[string]string{".env": "changed\n"})
	require.Value(s.Put(dir))(t)
	if got := gittest.Read(t, dir, ".env"); got != "one\n" || s.Hash() != hash || read(t, repo, ".env").Hash() == hash {
		t.Errorf("%q", got)
	}
}

// A file that is too large, and a directory with too many files, keep the others from nothing.
func TestTooMuchIsNotCopied(t *testing.T) {
	t.Parallel()
	root, repo := open(t, map[string]string{".gitignore": "*.db\n.env\n"}, map[string]string{"big.db": "", ".env": "e\n", "z.db": "z\n"})
	require.NoError(t, os.Truncate(root+"/big.db", 17<<20))
	s := read(t, repo, "*.db\n.env\n")
	if got := strings.Join(s.Names(), " "); got != ".env z.db" || len(s.Left()) != 1 {
		t.Errorf("%s, left %q", got, s.Left())
	}
	if s := read(t, repo, "nothing\n"); len(s.Names()) > 0 || s.Hash() != "" {
		t.Errorf("%q", s.Names())
	}
}

// Nothing is written outside of a directory by a link that is there.
func TestNoLinkLeadsOut(t *testing.T) {
	t.Parallel()
	_, repo := open(t, map[string]string{".gitignore": "config/\n"}, map[string]string{"config/a": "a\n"})
	s := read(t, repo, "config/\n")
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, dir+"/config"))
	if written, err := s.Put(dir); err == nil || len(written) > 0 || !durable.IsMissing(outside+"/a") {
		t.Errorf("written %q, %v", written, err)
	}
	link := t.TempDir() + "/lane"
	require.NoError(t, os.Symlink(outside, link))
	if written, err := s.Put(link); err == nil || len(written) > 0 {
		t.Errorf("written %q, %v", written, err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	odd := "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
	_, repo := open(t, map[string]string{".gitignore": "*.local\n.env\n"}, map[string]string{
		".env":    "export API_TOKEN='abcDEF123456zz' # of mine\nPLAIN=hello-world-1\nDB=postgres://u:pw99secret@h/db\nODD=" + odd + "\n",
		"c.local": "password: \"yaml77secret\"\n{\"clientSecret\": \"json88secret\", \"port\": 8080}\n", "b.local": "PASSWORD=\x00binary1234"})
	hide := redact.New(read(t, repo, ".env\n*.local\n").Keys()...)
	for _, key := range []string{"abcDEF123456zz", "pw99secret", odd, "yaml77secret", "json88secret"} {
		if !hide.Contains("x " + key + " y") {
			t.Errorf("%s is shown", key)
		}
	}
	if text := "hello-world-1 8080 binary1234 postgres://u"; hide.Contains(text) {
		t.Errorf("hidden in %q: %q", text, hide.String(text))
	}
}

func TestPropose(t *testing.T) {
	t.Parallel()
	_, repo := open(t, map[string]string{".gitignore": ".env\nnode_modules/\n*.pem\ncerts/\n*.local.*\nlog*\n", "web/a": "a\n", "config/a": "a\n"},
		map[string]string{".env": "e\n", "web/.env": "e\n", "node_modules/.env": "no\n", "a b.pem": "p\n", "certs/x": "p\n",
			"config/db.local.yml": "c\n", "web/x.local.js": "no\n", "log": "no\n"})
	got := require.Value(localfiles.Propose(t.Context(), repo))(t)
	if want := []string{"/.env", "/a b.pem", "/certs/", "/config/db.local.yml", "/web/.env"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s := read(t, repo, strings.Join(got, "\n")); len(s.Names()) != 5 {
		t.Errorf("they name %q", s.Names())
	}
}
