//go:build linux

package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
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
		"git revert --no-edit HEAD", "git tag -a v2 -m v2",
		"git checkout -q -b side HEAD~1 && git commit -q --allow-empty -m side && git checkout -q - && git merge --no-ff --no-commit side && git merge --continue", "git reset --hard HEAD", "git clean -nd", "git config user.name", "git log --graph --all", "git reflog -n 5", "git archive HEAD | tar t",
		"git worktree list", "git fsck", "git gc --auto", "git format-patch -1 --stdout", "mkdir -p inner && cd inner && git init -q . && git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x && rm -rf ../inner"}},
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
		plain, confined := p.try(newEscapeWorld(t, os.Getuid()), "--no-sandbox"), p.try(newEscapeWorld(t, os.Getuid()), "--sandbox")
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
	w.env = []string{"PATH=" + filepath.Dir(w.program()) + ":" + os.Getenv("PATH")}
	w.knowsIdentity()
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

// greedy are commands that take more of the machine than a command may, and what the member reads of it.
var greedy = map[string][2]string{
	// A bomb stops at some 8,000 processes by itself, so that a limit that fails does not take the machine down. Its
	// processes sleep for a time that no other test uses: what is left of them is found by it.
	"fork bomb":           {`b() { [ $1 -gt 12 ] || { b $(($1+1)) & b $(($1+1)) & }; sleep 9173; }; b 0 2>/dev/null; sleep 9173`, "its limit of 300 processes"},
	"bomb that leaves":    {`(setsid sh -c 'b() { [ $1 -gt 12 ] || { b $(($1+1)) & b $(($1+1)) & }; sleep 9173; }; b 0' >/dev/null 2>&1 &); sleep 9173`, "its limit of 300 processes"},
	"memory":              {`dd if=/dev/zero of=/dev/null bs=1500M`, "its limit of 600 MB of memory"},
	"memory in many":      {`for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/dev/null bs=100M & done; wait`, "its limit of 600 MB of memory"},
	"output":              {`head -c 5G /dev/zero | tr '\0' x`, "printed more than 100 MB"},
	"output of lines":     {`yes | head -c 5G`, "printed more than 100 MB"},
	"a large file":        {`dd if=/dev/zero of=large bs=1M count=500; wc -c large`, "104857600 large"},
	"a file with holes":   {`truncate -s 50G holes; test ! -s holes && echo refused`, "refused"},
	"directory in memory": {`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do dd if=/dev/zero of=/tmp/$i bs=1M count=99; done 2>&1 | tail -1; echo ended`, ""},
}

// What a command takes of the machine harms neither the other members nor muster: each greedy command ends, its member
// reads why, and what another does meanwhile lands.
func TestGreedyCommands(t *testing.T) {
	tier.All(t)
	asEachUser(t, beGreedy) // nobody can make no control group: muster counts
}

// beGreedy has one member take what it can get, while another does its work.
func beGreedy(t *testing.T, w *escapeWorld) {
	w.knowsIdentity()
	turns := []any{turn("task_create", map[string]any{"subject": "modest"}), // which alice takes by herself
		turn("spawn_teammate", map[string]any{"name": "alice", "role": "coder", "prompt": "modest"})}
	var modest []any
	for _, name := range slices.Sorted(maps.Keys(greedy)) {
		turns = append(turns, bash("echo 'tried ["+name+"]'\n"+greedy[name][0]))
		modest = append(modest, bash("echo beside "+name+" >> modest.txt; seq 3 | xargs -n 1 echo; git add modest.txt; git commit -qm more; wc -l modest.txt"))
	}
	turns = working(append(turns, bash("git clean -fdq; git reset -q --hard; echo good > b.txt"))...)
	modest = append(modest, turn("complete_task", map[string]any{"task_id": 2, "summary": "Works."}), done)
	model, err := json.Marshal(map[string]any{"speakers": map[string]any{"lead": turns, "alice": modest}})
	require.NoError(w, err)
	w.env = append(w.env, "MUSTER_RESOURCES_PROCESSES=300", "MUSTER_RESOURCES_MEMORY=600MB", "MUSTER_RESOURCES_FILE_SIZE=100MB")
	out := w.plays(model, "--teammates", "1")
	if landed := w.git("ls-tree", "--name-only", "muster/t"); !strings.Contains(landed, "b.txt") || !strings.Contains(landed, "modest.txt") {
		t.Errorf("landed: %s\n%s", landed, out)
	}
	said := w.transcript()
	for name, c := range greedy {
		_, after, tried := strings.Cut(said, "tried ["+name+"]\\n")
		if end := strings.Index(after, "tried ["); end > 0 {
			after = after[:end]
		}
		if !tried || !strings.Contains(after, c[1]) {
			t.Errorf("%s: tried %v, and told:\n%.1000s", name, tried, after)
		}
	}
	if left, _ := exec.Command("pgrep", "-af", "sleep 917[3]").Output(); len(left) > 0 { // without one it exits with 1
		t.Errorf("still there: %.1000s", left)
	}
}
