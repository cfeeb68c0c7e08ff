package hostile

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// does CODE COMMAND ARGS... runs a team as team does, whose lead runs one command in the lane of its only task and then
// completes it. If the command has written $TMPDIR/again, that is run before the second try. In the command R is git's common directory, ROOT the user's checkout
// and T the target's name.
func does(ts *testscript.TestScript, neg bool, args []string) {
	command, err := json.Marshal(`R=$(git rev-parse --path-format=absolute --git-common-dir); ROOT=$(dirname $R); ` +
		`T=muster/$(basename $ROOT); ` + args[1])
	ts.Check(err)
	const complete = "    - do: [{complete_task: {task_id: 1, summary: one}}]\n"
	const again = "    - do: [{bash: {command: 'if test -e $TMPDIR/again; then sh $TMPDIR/again; fi'}}]\n"
	script := fmt.Sprintf("speakers:\n  lead:\n    - do: [{task_create: {subject: one}}]\n"+
		"    - do: [{claim_task: {task_id: 1}}]\n    - do: [{bash: {command: %s}}]\n", command) +
		complete + again + complete + "    - say: Done.\n"
	ts.Check(os.WriteFile(ts.Getenv("WORK")+"/does.yaml", []byte(script), 0o600))
	teamRun(ts, neg, append([]string{args[0], "does.yaml"}, args[2:]...))
}
