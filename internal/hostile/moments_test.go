//go:build linux

package hostile

import "maps"

type input = map[string]any

// moments are the models of the runs, by the moment at which muster works with what the member has left: after that the
// lead, or at another moment somebody else, has run the commands.
var moments = map[string]func(commands string) map[string][]any{
	"complete": func(commands string) map[string][]any {
		return lead(claiming(append([]any{attacking(commands)}, looks...)...), complete(1), readObjects)
	},
	"release": func(commands string) map[string][]any {
		return lead(claiming(attacking(commands)), release, turn("claim_task", input{"task_id": 1}))
	},
	"remove": func(commands string) map[string][]any {
		return lead(claiming(attacking(commands)), release,
			turn("worktree_remove", input{"name": "task-1-work", "force": true}))
	},
	// muster is killed while the commands run, and resumed.
	"killed": func(commands string) map[string][]any {
		return lead(claiming(bash(commands+"\ntouch planted; sleep 60")), complete(1), readObjects)
	},
	// The set-up and the check run them, and do so again in what they have left.
	"check": func(commands string) map[string][]any {
		return lead(claiming(turn("write_file", input{"path": "code.sh", "content": commands})), complete(1),
			turn("task_create", input{"subject": "more"}), turn("claim_task", input{"task_id": 2}),
			bash("echo more > more.txt"), complete(2), readObjects)
	},
	// alice lands another content of a.txt while the lead works: the target is merged into the lead's lane.
	"conflict": func(commands string) map[string][]any {
		return withAlice(append(claiming(bash("echo mine > a.txt; git commit -qam mine")), // made before alice lands
			turn("task_create", input{"subject": "other"}), alice,
			until(bash("sleep 0.3; date +%N; git log -1 --format=%s muster/t"), "other"),
			attacking(commands), complete(1), readObjects, complete(1)),
			bash("echo theirs > a.txt"), complete(2))
	},
	// Two lanes at work at a time: muster looks whether they collide.
	"collision": func(commands string) map[string][]any { return colliding(commands, complete(2)) },
	// The same, and the other lane does not land.
	"beside": func(commands string) map[string][]any { return colliding(commands, bash("sleep 2")) },
	// The lead runs the commands in the lane of alice, while she completes her task again and again.
	"race": func(commands string) map[string][]any {
		return withAlice([]any{turn("task_create", input{"subject": "work"}), alice,
			until(bash("sleep 0.3; date +%N; git for-each-ref"), "wt/task-1-work"),
			turn("worktree_run", input{"name": "task-1-work", "command": commands})},
			bash("echo x > x; for i in $(seq 100); do test -e racing || sleep 0.1; done"),
			racing, complete(1), readObjects)
	},
}

var (
	release = turn("release_task", input{"task_id": 1, "reason": "tired"})
	alice   = turn("spawn_teammate", input{"name": "alice", "role": "coder", "prompt": "other"})
	// readObjects shows what came into the repository.
	readObjects = bash("timeout 20 git cat-file --batch-all-objects --batch --buffer | grep -a -m 3 c0ffee; " +
		"timeout 5 git log -p | grep -a c0ffee")
	// racing completes the task until no command in the lane races any more. muster stops a member whose calls have the
	// same results again and again, so that it tells the time.
	racing = until(input{"do": []any{input{"complete_task": input{"task_id": 1, "summary": "Works."}},
		input{"bash": input{"command": "sleep 0.1; date +%N; test -e racing || echo race is over"}}}}, "race is over")
	// looks are the tools that look into a lane. That they find nothing, or refuse, is as good as any answer.
	looks = []any{turn("glob", input{"pattern": "**/*"}),
		turn("grep", input{"pattern": "c0ffee", "output_mode": "content"}), turn("read_file", input{"path": "x"}),
		turn("edit_file", input{"path": "x", "old_text": "a", "new_text": "b"}),
		turn("worktree_status", input{"name": "task-1-work"})}
)

// colliding has the lead run the commands in a lane that collides with that of alice. last is what she does in the end.
func colliding(commands string, last any) map[string][]any {
	return withAlice(append(claiming(turn("task_create", input{"subject": "other"}), alice,
		bash("echo mine > a.txt; sleep 2")),
		attacking(commands), bash("sleep 2; echo more >> a.txt"), bash("sleep 1")),
		bash("echo theirs > a.txt; printf %s-of-another-lane c0ffee | git hash-object -w --stdin; "+
			"touch $(printf %s-of-another-lane c0ffee); git add -A; sleep 3"),
		bash("echo again > a.txt; sleep 2"), last)
}

// attacking runs the commands of an attack.
func attacking(commands string) any {
	return turn("bash", input{"command": commands, "timeout": 120})
}

func complete(task int) any {
	return turn("complete_task", input{"task_id": task, "summary": "Works."})
}

// until repeats a turn until its result matches.
func until(t any, cue string) any {
	repeated := maps.Clone(t.(input))
	repeated["until"] = cue
	return repeated
}

func lead(begin []any, turns ...any) map[string][]any {
	return map[string][]any{"lead": append(append(begin, turns...), done)}
}

func withAlice(lead []any, turns ...any) map[string][]any {
	return map[string][]any{"lead": append(lead, done), "alice": append(turns, done)}
}
