package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"muster"
)

func TestAPlanIsApprovedWithOneKey(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("a")
	s.did(`answer 7f2c91aa true ""`)
	s.has("plan for 4 of carol is approved")
	o := overview()
	o.Requests = nil
	s.send(changedMsg{overview: o})
	s.has("TASK 7 fuzzing", "plan for 4 of carol is approved") // the next that waits
	s.keys("a", "A", "r")
	s.did(`answer 7f2c91aa true ""`)
}

// Where another question takes the place of one that was answered, the key must be pressed when it has been seen.
func TestAKeyAnswersOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 80, 24)
		next := plan
		next.ID, next.TaskID = "9b", 2
		o := overview()
		o.Requests = []muster.Request{next}
		s.keys("a")
		s.send(changedMsg{overview: o})
		s.has("PLAN for 2 counter")
		s.keys("a", "A", "r", "u")
		s.did(`answer 7f2c91aa true ""`)
		time.Sleep(time.Minute)
		s.keys("a")
		s.did(`answer 7f2c91aa true ""`, `answer 9b true ""`)
	})
}

func TestAPlanIsAnsweredWithWords(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("r", "enter")
	s.has("not rejected: say why")
	s.keys("r", "the old readr", "backspace", "backspace", "der stays", "enter")
	s.has("plan for 4 of carol is rejected")
	s.keys("A", "go ahead", "enter")
	s.did(`answer 7f2c91aa false "the old reader stays"`, `answer 7f2c91aa true "go ahead"`)
	s.keys("A", "never mind", "esc")
	s.did(`answer 7f2c91aa false "the old reader stays"`, `answer 7f2c91aa true "go ahead"`)
}

// What a member asks to run can be allowed for longer; a plan cannot.
func TestAPermissionIsGivenForLonger(t *testing.T) {
	for key, scope := range map[string]string{"a": "", "u": " run", "U": " always"} {
		s := open(t, 80, 24)
		s.keys("u", "U")
		s.did()
		o := overview()
		r := plan
		r.Kind, r.Plan, r.Asks = muster.AskPermission, "docker build .", []string{"bash(docker build .)"}
		o.Requests = []muster.Request{r}
		s.send(changedMsg{overview: o})
		s.has("docker build .", "u for the run")
		s.keys(key)
		s.did(`answer 7f2c91aa true ""` + scope)
		s.has("is approved" + map[string]string{"u": " for this run", "U": " for good"}[key])
	}
}

// Of two faces the first decides, and the second says so.
func TestTheFirstDecisionStands(t *testing.T) {
	s := open(t, 80, 24)
	s.team.answer = plan
	s.team.answer.Status, s.team.answer.ResolvedBy, s.team.answer.ResolvedAt = muster.RequestRejected, muster.Lead, 4990
	s.keys("a")
	s.has("plan for 4 of carol was rejected before, by lead at 01:23: that stands")
}
