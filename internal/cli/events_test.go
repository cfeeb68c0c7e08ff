package cli

import "muster"

// at is an event of the tests.
func at(kind string, member muster.Name, task muster.TaskID, fields ...any) muster.Event {
	e := muster.Event{Kind: kind, At: 1000, Member: member, Task: task, Fields: map[string]any{}}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i].(string)] = fields[i+1]
	}
	return e
}

func landedTask(id muster.TaskID, subject string, owner muster.Name, commit, receipt string) muster.Task {
	return muster.Task{ID: id, Subject: subject, Status: muster.Completed, Owner: owner, UpdatedAt: 1010,
		Landed: &muster.Landed{Commit: commit, Receipt: receipt, Check: "go test ./...", Seconds: 0.7}}
}
