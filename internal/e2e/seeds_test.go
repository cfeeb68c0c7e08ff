//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// neighbour is a program written after the tutorials that works in the same directory: it takes no locks, truncates the
// files that it writes, and knows nothing of ours but the formats.
type neighbour struct {
	t    *testing.T
	root string
	mu   sync.Mutex // its own threads do exclude each other
}

// save is task_path.write_text(json.dumps(task, indent=2)).
func (n *neighbour) save(task map[string]any) {
	n.write(fmt.Sprintf(".tasks/task_%v.json", task["id"]), task)
}

func (n *neighbour) write(path string, v map[string]any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(n.root, path), data, 0o644)
	}
	if err != nil {
		n.t.Error(err)
	}
}

// load is json.loads(path.read_text()): a reader that does not forgive.
func (n *neighbour) load(path string) (v map[string]any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	data, err := os.ReadFile(filepath.Join(n.root, path))
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Errorf("%s cannot be read: %v\n%s", path, err, data)
	}
	return v
}

// truthy is what Python takes for true.
func truthy(v any) bool {
	switch v := v.(type) {
	case string:
		return v != ""
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case bool:
		return v
	}
	return false
}

// unclaimed is scan_unclaimed_tasks.
func (n *neighbour) unclaimed() (ids []int) {
	files, _ := filepath.Glob(filepath.Join(n.root, ".tasks", "task_*.json"))
	for _, f := range files {
		task := n.load(filepath.Join(".tasks", filepath.Base(f)))
		if task["status"] == "pending" && !truthy(task["owner"]) && !truthy(task["blockedBy"]) {
			ids = append(ids, int(task["id"].(float64)))
		}
	}
	return ids
}

// send is MessageBus.send.
func (n *neighbour) send(to string, mail map[string]any) {
	data, err := json.Marshal(mail)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(n.root, ".team", "inbox", to+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, err = f.Write(append(data, '\n'))
			f.Close()
		}
	}
	if err != nil {
		n.t.Error(err)
	}
}

// inbox is read_inbox, drained.
func (n *neighbour) inbox(name string) (mails []map[string]any) {
	path := filepath.Join(n.root, ".team", "inbox", name+".jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			n.t.Errorf("a line of the inbox of %s cannot be read: %v\n%s", name, err, line)
		}
		mails = append(mails, m)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		n.t.Error(err)
	}
	return mails
}

// config is .team/config.json as its readers take it.
type config struct {
	Team    string `json:"team_name"`
	Members []struct {
		Name, Role, Status string
	}
}

func (w *world) config() (c config) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, ".team", "config.json"))
	if errors.Is(err, os.ErrNotExist) {
		return c
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		w.t.Errorf(".team/config.json cannot be read: %v\n%s", err, data)
	}
	return c
}

// neighbourly is a team whose lead sleeps while a neighbour works beside it.
const neighbourly = `
speakers:
  lead:
    - do:
        - task_create: {subject: ours, description: Write ours.}
        - spawn_teammate: {name: alice, role: coder, prompt: You write what is asked for.}
    - do: [{wait: {}}]
      until: All done
    - say: Nothing is open.
scenes:
  - cue: '>\nwhat is (?P<what>\w+)\?\n'
    who: [alice]
    turns:
      - do: [{send_message: {to: dora, content: "${what} is a word"}}]
  - cue: 'Task #(?P<id>\d+): (?P<word>ours|theirs|after|last)\n'
    who: [coder]
    turns:
      - do: [{write_file: {path: "${word}.txt", content: "${word}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
`

// TestNeighbour has a program after the tutorials write and read the same files while the team runs.
func TestNeighbour(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	model := w.words(neighbourly)
	n := &neighbour{t: t, root: w.root}
	require.NoError(t, os.MkdirAll(filepath.Join(w.root, ".tasks"), 0o755))
	// Task 50 is the neighbour's own: it works on it while the team runs.
	n.save(map[string]any{"id": 50, "subject": "dora's own", "description": "", "status": "in_progress", "owner": "dora", "blockedBy": []int{}})
	w.muster(0, "adopt", "--yes")
	// The neighbour joins as the tutorials' manager does: it writes itself into the whole config.
	joined := n.load(".team/config.json")
	joined["members"] = append(joined["members"].([]any), map[string]any{"name": "dora", "role": "writer", "status": "working"})
	n.write(".team/config.json", joined)
	run := w.start("run", "--team", "wide", "--model", model, "work beside dora")
	w.awaits("alice is there", func() bool { return len(w.config().Members) > 1 })

	// All readers of the tutorials read all the time, and none of them ever fails.
	over := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(3 * time.Millisecond):
			}
			for _, id := range n.unclaimed() {
				task := n.load(fmt.Sprintf(".tasks/task_%d.json", id))
				if on, ok := task["dependsOn"].([]any); ok && !truthy(task["blockedBy"]) {
					for _, blocker := range on {
						if b := n.load(fmt.Sprintf(".tasks/task_%v.json", blocker)); b["status"] != "completed" {
							t.Errorf("task %d looks ready, but its blocker %v is %v", id, blocker, b["status"])
						}
					}
				}
			}
			if c := n.load(".team/config.json"); c != nil {
				for _, m := range c["members"].([]any) {
					if m := m.(map[string]any); m["name"] == nil || m["role"] == nil || m["status"] == nil {
						t.Errorf("a member in config.json is %v", m)
					}
				}
			}
			if index := n.load(".worktrees/index.json"); index != nil {
				for name, lane := range index["worktrees"].(map[string]any) {
					l := lane.(map[string]any)
					if l["status"] == nil || l["branch"] != "wt/"+name || l["path"] == nil {
						t.Errorf("lane %s in the index is %v", name, l)
					}
				}
			}
		}
	})

	// It adds tasks: one ready, one after that, one after its own.
	n.save(map[string]any{"id": 61, "subject": "theirs", "description": "Write theirs.", "status": "pending", "owner": nil, "blockedBy": []int{}, "colour": "blue"})
	n.save(map[string]any{"id": 62, "subject": "after", "status": "pending", "owner": "", "blockedBy": []int{61}})
	n.save(map[string]any{"id": 63, "subject": "last", "description": "Write last.", "status": "pending", "owner": nil, "blockedBy": []int{50}, "required_role": "coder"})
	landed := func(id int) func() bool {
		return func() bool {
			task := n.load(fmt.Sprintf(".tasks/task_%d.json", id))
			return task["status"] == "completed" && task["landed"] != nil
		}
	}
	w.awaits("task 61 has landed", landed(61))
	w.awaits("task 62 has landed", landed(62))
	last := n.load(".tasks/task_63.json")
	last["subject"] = "stolen"
	n.save(last) // which is undone: that task is muster's now
	w.awaits("the change is undone", func() bool { return n.load(".tasks/task_63.json")["subject"] == "last" })
	if task := n.load(".tasks/task_61.json"); task["colour"] != "blue" || task["owner"] != "alice" || task["claim_source"] != "auto" {
		t.Errorf("task 61 is %v", task)
	}
	if task := n.load(".tasks/task_63.json"); task["status"] != "pending" || !truthy(task["blockedBy"]) {
		t.Errorf("task 63 is %v before its blocker is completed", task)
	}

	// It asks, in the words of two tutorials, and broken lines between them hurt nobody.
	n.send("alice", map[string]any{"type": "message", "sender": "dora", "content": "what is blue?", "ts": muster.UnixTime(time.Now())})
	n.send("alice", map[string]any{"type": "message", "from": "dora", "to": "alice", "content": "what is red?", "timestamp": muster.UnixTime(time.Now())})
	var answers []string
	w.awaits("both questions are answered", func() bool {
		for _, m := range n.inbox("dora") {
			if m["from"] != "alice" || m["timestamp"] == nil || m["type"] != "message" {
				t.Errorf("the answer is %v", m)
			}
			answers = append(answers, fmt.Sprint(m["content"]))
		}
		return len(answers) >= 2
	})
	slices.Sort(answers)
	if !slices.Equal(answers, []string{"blue is a word", "red is a word"}) {
		t.Errorf("the answers are %q", answers)
	}

	// It completes its own, which frees the last. A task that is there is changed by the command while a team works.
	w.muster(0, "task", "complete", "50", "--as", "dora")
	w.awaits("task 63 has landed", landed(63))
	out := run.ends(0)
	close(over)
	readers.Wait()

	w.landedOnce("muster/wide", "61", "62", "63", fmt.Sprint(w.called("ours")))
	w.untouched()
	w.has("what the user reads", out.String(), "another program changed .tasks/task_63.json")
	if task := n.load(".tasks/task_50.json"); task["status"] != "completed" || task["landed"] != nil {
		t.Errorf("task 50 is %v", task)
	}
	if c := w.config(); len(c.Members) != 2 || c.Members[0].Name != "alice" && c.Members[1].Name != "alice" {
		t.Errorf("the members are %v", c.Members)
	}
	claims := strings.Count(w.read(".tasks/claim_events.jsonl"), `"event":"task.claimed"`)
	if claims != 4 {
		t.Errorf("%d claims in claim_events.jsonl, want 4", claims)
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, w.told())
	}
}

// called is the id of the task with the subject.
func (w *world) called(subject string) muster.TaskID {
	w.t.Helper()
	for _, task := range w.tasks() {
		if task.Subject == subject {
			return task.ID
		}
	}
	w.t.Fatalf("there is no task %q", subject)
	return 0
}
