//go:build linux

package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/tier"
)

// project is a small project of a toolchain and what its developers type.
type project struct {
	needs    string // the program without which it is left out
	files    map[string]string
	commands []string
}

// projects are two toolchains, a shell, and git. What they need of the network is not asked for: none has it.
var projects = map[string]project{
	"git": {needs: "git", commands: []string{"git status", "git status --short", "git diff", "git diff --stat HEAD", "git log --oneline",
		"git log -p -1", "git show --stat", "git branch", "git branch topic", "git checkout topic", "git checkout -", "git checkout -b other", "git switch -",
		"echo x > tracked && git add tracked", "git commit -q -m tracked", "git commit -q --amend -m again", "git stash list", "git tag v1", "git describe --tags",
		"git blame tracked", "git grep -n x", "git rev-parse HEAD", "git ls-files", "git diff HEAD~1", "git merge topic", "git rebase topic", "git cherry-pick --allow-empty -x HEAD~0 || git cherry-pick --skip",
		"git revert --no-edit HEAD", "git reset --hard HEAD", "git clean -nd", "git config user.name", "git log --graph --all", "git reflog -n 5", "git archive HEAD | tar t",
		"git worktree list", "git fsck", "git gc --auto", "git format-patch -1 --stdout", "mkdir -p inner && cd inner && git init -q . && git commit -q --allow-empty -m x && rm -rf ../inner"}},
	"sh": {needs: "sh", commands: []string{"ls -la", "pwd", "cat /etc/os-release", "echo x | tee out.txt", "mktemp", "find . -name '*.txt'", "grep -r x .", "sed -i s/x/y/ out.txt",
		"tar czf /tmp/a.tgz out.txt && tar tzf /tmp/a.tgz", "(sleep 0.1 & wait)", "ps aux", "df -h .", "env", "date", "id", "mkdir -p a/b && touch a/b/c && rm -r a", "ln -s out.txt link && readlink -f link",
		"chmod +x out.txt", "cat <<EOF > heredoc\nx\nEOF", "test -w .", "ulimit -a", "nproc", "uname -a", "which git", "xargs -n1 echo < out.txt"}},
	"go": {needs: "go", files: map[string]string{"go.mod": "module example.org/x\n\ngo 1.24\n", "x.go": "package x\n\nfunc Add(a, b int) int { return a + b }\n",
		"cmd/x/main.go": "package main\n\nimport \"example.org/x\"\n\nfunc main() { println(x.Add(1, 2)) }\n",
		"x_test.go":     "package x\n\nimport (\n\t\"net/http/httptest\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n\ts := httptest.NewServer(nil)\n\tdefer s.Close()\n\tif r, err := s.Client().Get(s.URL); err != nil || r.StatusCode != 404 {\n\t\tt.Fatal(err)\n\t}\n\tif err := os.WriteFile(t.TempDir()+\"/x\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n"},
		commands: []string{"go version", "go env GOCACHE", "go build ./...", "go vet ./...", "go test ./...", "go test -count=1 -run Add .", "go run ./cmd/x", "gofmt -l .", "go list ./...", "go mod tidy", "go mod verify", "go build -o bin/x ./cmd/x && ./bin/x", "go doc fmt.Println", "go clean -testcache"}},
	"python": {needs: "python3", files: map[string]string{"x.py": "def add(a, b):\n    return a + b\n",
		"test_x.py": "import unittest, tempfile, http.server, threading, urllib.request, multiprocessing\nfrom x import add\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n    def test_server(self):\n        s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n        threading.Thread(target=s.serve_forever, daemon=True).start()\n        urllib.request.urlopen('http://127.0.0.1:%d/' % s.server_port).read()\n    def test_pool(self):\n        with multiprocessing.Pool(2) as p:\n            self.assertEqual(p.starmap(add, [(1, 2)]), [3])\n        tempfile.mkdtemp()\n"},
		commands: []string{"python3 --version", "python3 -m unittest -q", "python3 -m py_compile x.py", "python3 -c 'import x; print(x.add(1, 2))'", "python3 -m venv --without-pip .venv && .venv/bin/python -c 'import sys; print(sys.prefix)'", "python3 -m compileall -q .", "python3 -m json.tool <<< '{}'", "python3 -m pip --version", "python3 -m pip list"}},
}

// TestOrdinaryCommands: what developers type works confined where it works unconfined. Under Landlock, what needs a
// socket or /tmp may fail, as docs/sandbox.md says.
func TestOrdinaryCommands(t *testing.T) {
	tier.All(t)
	tried := 0
	for name, p := range projects {
		if _, err := exec.LookPath(p.needs); err != nil {
			continue
		}
		plain, confined := p.try(newEscapeWorld(t, os.Getuid())), p.try(newEscapeWorld(t, os.Getuid()), "--sandbox")
		w := newEscapeWorld(t, os.Getuid())
		w.breakBubblewrap()
		landlocked := p.try(w, "--sandbox")
		for i, command := range p.commands {
			tried++
			if plain[i] != "" {
				continue
			}
			if confined[i] != "" {
				t.Errorf("%s: %s\n%s", name, command, confined[i])
			}
			if landlocked[i] != "" && !slices.Contains(underLandlock[name], command) {
				t.Errorf("%s: %s under Landlock\n%s", name, command, landlocked[i])
			}
		}
	}
	t.Logf("%d commands tried", tried)
}

// underLandlock are the commands that may fail there.
var underLandlock = map[string][]string{
	"sh":     {"tar czf /tmp/a.tgz out.txt && tar tzf /tmp/a.tgz"},
	"go":     {"go test ./...", "go test -count=1 -run Add ."},
	"python": {"python3 -m unittest -q"},
}

// try has a member run the commands in its lane, and returns for each what it says where it fails.
func (p project) try(w *escapeWorld, flags ...string) (failures []string) {
	// The toolchains are those of whoever runs the test. What stands in bin takes the place of a program of the system.
	w.env = []string{"PATH=" + filepath.Join(w.base, "bin") + ":" + os.Getenv("PATH")}
	if home, err := os.UserHomeDir(); err == nil {
		w.env = append(w.env, "RUSTUP_HOME="+filepath.Join(home, ".rustup"), "GOMODCACHE="+filepath.Join(home, "go/pkg/mod"))
	}
	for file, text := range p.files {
		w.write(filepath.Join("repo", file), text)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", "project")
	var turns []any
	for i, command := range p.commands {
		turns = append(turns, bash(fmt.Sprintf("(%s\n); echo \"status %d is $?.\"", command, i)))
	}
	// It ends with a task that is open, which is of no interest here.
	said, _ := w.team(scripted(append(claiming(turns...), done)), flags...)
	results := toolResults(w.transcript())
	for i := range p.commands {
		end, text := fmt.Sprintf("status %d is ", i), ""
		for _, r := range results {
			if strings.Contains(r, end) {
				text = r
			}
		}
		switch at := strings.LastIndex(text, end); {
		case text == "":
			failures = append(failures, "was not run:\n"+said)
		case !strings.HasPrefix(text[at:], end+"0."):
			failures = append(failures, text[max(0, len(text)-600):])
		default:
			failures = append(failures, "")
		}
	}
	return failures
}

// toolResults returns the texts of the results in a transcript.
func toolResults(transcript string) (all []string) {
	for line := range strings.Lines(transcript) {
		var entry struct {
			Kind    string
			Message struct {
				Parts []struct {
					V struct {
						Parts []struct{ V struct{ Text string } }
					}
				}
			}
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Kind != "result" {
			continue
		}
		for _, p := range entry.Message.Parts {
			for _, x := range p.V.Parts {
				all = append(all, x.V.Text)
			}
		}
	}
	return all
}
