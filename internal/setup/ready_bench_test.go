package setup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"muster/internal/git"
	"muster/internal/setup"
	"muster/internal/testing/gittest"
)

// BenchmarkReady puts a kept node_modules of 5,000 files into a fresh lane. bench/ measures what a lane costs without.
func BenchmarkReady(b *testing.B) {
	root := gittest.Repo(b, map[string]string{"package.json": "{}\n", "package-lock.json": "{}\n",
		".gitignore": "node_modules/\n"})
	repo, err := git.Open(b.Context(), root)
	if err != nil {
		b.Fatal(err)
	}
	cache, store := b.TempDir(), (*setup.Store)(nil)
	store = setup.Open(repo, cache, nil)
	commit := gittest.Git(b, root, "rev-parse", "HEAD")
	lane := func(n int) string {
		dir := filepath.Join(b.TempDir(), fmt.Sprint("lane-", n))
		gittest.Git(b, root, "worktree", "add", "-q", "--detach", dir)
		return dir
	}
	first := lane(-1)
	_, err = store.Prepare(b.Context(), setup.Job{Dir: first, Commit: commit, Command: "npm ci",
		Run: func(context.Context) (bool, error) {
			for i := range 5000 {
				dir := filepath.Join(first, "node_modules", fmt.Sprint("p", i/20))
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return false, err
				}
				text := make([]byte, 4<<10)
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".js")), text, 0o600); err != nil {
					return false, err
				}
			}
			return true, nil
		}})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		dir := lane(i)
		b.StartTimer()
		s, err := store.Ready(b.Context(), setup.Job{Dir: dir, Commit: commit, Command: "npm ci"})
		if err != nil || !s.IsReady {
			b.Fatalf("%+v, %v", s, err)
		}
	}
}
