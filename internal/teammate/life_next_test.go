package teammate

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/spend"
	"muster/llm"
)

// errModel is an error of the model of a kind, which wraps errTest.
func errModel(k llm.Kind) error { return errors.Join(errTest, &llm.Error{Kind: k}) }

// over is a budget that is spent, and errSpent the error of a call that it refuses.
func over(s spend.Scope) *spend.Exceeded { return &spend.Exceeded{Scope: s} }

func errSpent(s spend.Scope) error {
	return errors.Join(errTest, &llm.Error{Kind: llm.Spent, Err: over(s)})
}

// open, one task, is a team with open work; quiet is one with none.
var (
	openTasks = []muster.Task{{ID: 1, Status: muster.Pending}}
	canGoOn   = TeamProgress{HadTasks: true, Open: openTasks, Working: []muster.Name{"alice"}}
	isStuck   = TeamProgress{HadTasks: true, Open: openTasks, Stuck: "task #1 is for a tester and there is none"}
)

// Each row is a rule of a life, or one by which it goes on after a crash.
func TestNext(t *testing.T) {
	lead := func(f LeadFacts) Facts { return Facts{Stage: Resting, Lead: true, LeadAtRest: f} }
	inTalk := func(f Facts) Facts { f.InTalk = true; return f }
	idle := func(f IdleFacts) Facts { return Facts{Stage: Resting, Idle: f} }
	ended := func(isLead bool, f PhaseFacts) Facts { return Facts{Stage: PhaseEnded, Lead: isLead, Phase: f} }
	start := func(isLead bool, f StartFacts) Facts { return Facts{Stage: Starting, Lead: isLead, Start: f} }
	for _, c := range []struct {
		name string
		f    Facts
		want Action
	}{
		{"a new teammate hears its prompt", start(false, StartFacts{Empty: true, Recovered: true}), OpenConversation{}},
		{"one that is spawned again goes on with what it knows", start(false, StartFacts{Recovered: true}),
			OpenConversation{}},
		{"a new lead hears the goal", start(true, StartFacts{Empty: true}), OpenConversation{}},
		{"the lead of a new run starts a new conversation", start(true, StartFacts{OwesReply: true}),
			OpenConversation{Afresh: true}},
		{"calls that were cut off are answered first", start(true, StartFacts{Opened: true, OwesReply: true}),
			RecoverCalls{}},
		{"a model that owes a reply is asked", start(false, StartFacts{Opened: true, Recovered: true, OwesReply: true}),
			ContinueConversation{}},
		{"one that has ended its turn rests", start(false, StartFacts{Opened: true, Recovered: true}), Rest{}},
		{"one whose last call has ended its phase rests", start(false, StartFacts{Opened: true, Recovered: true,
			OwesReply: true, PhaseOver: true}), Rest{}},
		{"the lead of a playbook waits", start(true, StartFacts{Unneeded: true}), AwaitNeed{Afresh: true}},
		{"one that was needed goes on", start(true, StartFacts{Opened: true, Recovered: true, Unneeded: true}), Rest{}},

		{"a phase begins", Facts{Stage: Ready}, RunPhase{}},
		{"a phase goes on", Facts{Stage: Retrying}, RunPhase{}},
		{"the model has stopped", ended(false, PhaseFacts{}), Rest{}},
		{"the model agreed to shut down", ended(false, PhaseFacts{ShutdownGranted: true}),
			Finish{End: End{Text: "shut down as asked"}}},
		{"the user stops the turn", ended(true, PhaseFacts{Err: errTest, ByUser: true}), AnswerStopped{}},
		{"a limit releases a teammate's task",
			ended(false, PhaseFacts{Err: errTurns, Answered: true}), ReleaseTask{}},
		{"at a limit it is asked for its answer", ended(false, PhaseFacts{Err: errTurns}), AskForAnswer{}},
		{"so is the lead", ended(true, PhaseFacts{Err: errStandstill}), AskForAnswer{}},
		{"but not one that says nothing", ended(false, PhaseFacts{Err: errMute}), ReleaseTask{}},
		{"a limit of the lead ends the turn in a conversation",
			inTalk(ended(true, PhaseFacts{Err: errLoop})), AskUser{}},
		{"a limit of a teammate is not the user's to decide", inTalk(ended(false, PhaseFacts{Err: errTurns, Answered: true})),
			ReleaseTask{}},
		{"nor is an error of the lead's model", inTalk(ended(true, PhaseFacts{Err: errModel(llm.BadRequest)})),
			Finish{Err: errModel(llm.BadRequest)}},
		{"a conversation that is too long is made shorter", ended(false, PhaseFacts{Err: errModel(llm.ContextFull)}),
			RestartConversation{Harder: 1}},
		{"then harder", ended(false, PhaseFacts{Err: errModel(llm.ContextFull), Restarts: 1}), RestartConversation{Harder: 2}},
		{"at last it begins anew", ended(false, PhaseFacts{Err: errModel(llm.ContextFull), Restarts: 2}),
			RestartConversation{Harder: 3}},
		{"a new one that is too long helps nobody", ended(false, PhaseFacts{Err: errModel(llm.ContextFull),
			Restarts: 3}), GiveUp{}},
		{"one that is refused begins anew", ended(false, PhaseFacts{Err: errModel(llm.BadHistory)}),
			RestartConversation{Harder: 3}},
		{"once", ended(false, PhaseFacts{Err: errModel(llm.BadHistory), Restarts: 1}), GiveUp{}},
		{"a spent budget of the team stops it", ended(false, PhaseFacts{Err: errSpent(spend.OfTeam), OwnModel: true}),
			Finish{Err: &TeamStop{Err: over(spend.OfTeam)}}},
		{"a member whose budget is spent leaves", ended(false, PhaseFacts{Err: errSpent(spend.OfMember)}), GiveUp{}},
		{"a lead whose budget is spent stops the team", ended(true, PhaseFacts{Err: errSpent(spend.OfMember)}),
			Finish{Err: &TeamStop{Err: over(spend.OfMember)}}},
		{"a task whose budget is spent is set aside", ended(false, PhaseFacts{Err: errSpent(spend.OfTask)}), SetTaskAside{}},
		{"also that of the lead", ended(true, PhaseFacts{Err: errSpent(spend.OfTask)}), SetTaskAside{}},
		{"a model that was waited for in vain stops the team", ended(false, PhaseFacts{Err: errModel(llm.Overloaded)}),
			Finish{Err: &TeamStop{Err: errModel(llm.Overloaded)}}},
		{"in a conversation the user is asked", inTalk(ended(true, PhaseFacts{Err: errModel(llm.Unreachable)})),
			AskUser{}},
		{"a teammate's model fails", ended(false, PhaseFacts{Err: errModel(llm.BadRequest)}), GiveUp{}},
		{"the lead's model fails", ended(true, PhaseFacts{Err: errModel(llm.BadRequest)}),
			Finish{Err: errModel(llm.BadRequest)}},
		{"the key is refused to the team", ended(false, PhaseFacts{Err: errModel(llm.Denied)}),
			Finish{Err: &TeamStop{Err: errModel(llm.Denied)}}},
		{"a key of its own is refused", ended(false, PhaseFacts{Err: errModel(llm.Denied), OwnModel: true}), GiveUp{}},
		{"the lead's own is refused", ended(true, PhaseFacts{Err: errModel(llm.Denied), OwnModel: true}),
			Finish{Err: &TeamStop{Err: errModel(llm.Denied)}}},
		{"a loop releases the task", ended(false, PhaseFacts{Err: errors.Join(errTest, errLoop), Answered: true}), ReleaseTask{}},
		{"another host has taken over", ended(false, PhaseFacts{Err: muster.ErrFenced}), Finish{Err: muster.ErrFenced}},
		{"the user stops a turn that had ended", ended(true, PhaseFacts{ByUser: true}), Rest{}},
		{"the disk fails", ended(false, PhaseFacts{Err: errTest}), Finish{Err: errTest}},

		{"an idle member is stopped without its model", Facts{Stage: Resting, WakingMail: true,
			Idle: IdleFacts{Shutdown: "0000beef"}}, GrantShutdown{ID: "0000beef"}},
		{"mail comes before the board", Facts{Stage: Resting, WakingMail: true}, ReadMail{}},
		{"a finished job wakes", idle(IdleFacts{JobsFinished: true, Claim: Presented}), AnnounceJobs{}},
		{"a lost claim is dropped", idle(IdleFacts{Claim: LostClaim}), DropClaim{}},
		{"a landing that was cut off is resumed", idle(IdleFacts{Claim: Presented, Landing: true}), ResumeLanding{}},
		{"a task that was claimed before a crash is read", idle(IdleFacts{Claim: NotYetRead}), ClaimTask{}},
		{"a task that cannot begin is not tried at once again", idle(IdleFacts{Claim: NotYetRead, TriedTask: true}),
			WaitForWork{}},
		{"the next task is claimed", idle(IdleFacts{}), ClaimTask{}},
		{"there is none", idle(IdleFacts{TriedTask: true}), WaitForWork{}},
		{"an idle owner keeps its task until the timeout", idle(IdleFacts{Claim: Presented}), WaitForWork{}},
		{"the idle timeout passes", idle(IdleFacts{Claim: Presented, TimedOut: true}), TimeOut{}},
		{"not while an answer or other work is awaited", idle(IdleFacts{TriedTask: true, TimedOut: true,
			KeepsClaim: true}), WaitForWork{}},
		{"mail beats the timeout", Facts{Stage: Leaving, WakingMail: true}, ReadMail{}},
		{"nothing came", Facts{Stage: Leaving}, Leave{}},
		{"mail that came before the shutdown is read", Facts{Stage: Left, WakingMail: true}, Rejoin{}},
		{"the next life reads it itself", Facts{Stage: Left, WakingMail: true, Replaced: true},
			Finish{End: End{Text: "idle timeout"}}},
		{"the member is gone", Facts{Stage: Left}, Finish{End: End{Text: "idle timeout"}}},

		{"what the user says is heard first", lead(LeadFacts{ToHear: true, CutOff: "cut"}), HearMail{}},
		{"no task ever created: the text is the answer", lead(LeadFacts{Message: "42"}), Finish{End: End{Text: "42"}}},
		{"all done", lead(LeadFacts{Message: "Done.", Progress: TeamProgress{HadTasks: true, Landed: 2}}),
			Finish{End: End{Text: "Done."}}},
		{"somebody still talks", lead(LeadFacts{Progress: TeamProgress{Working: []muster.Name{"bob"}}}), AwaitTeam{}},
		{"open tasks that can go on", lead(LeadFacts{Progress: canGoOn}), Sleep{}},
		{"open tasks that cannot: told once", lead(LeadFacts{Progress: isStuck}),
			TellStuck{Open: 1, Why: isStuck.Stuck}},
		{"and then the run ends", lead(LeadFacts{Progress: isStuck, ToldStuck: true}),
			Finish{End: End{Code: 3, Text: isStuck.Stuck}}},
		{"a task needs attention", lead(LeadFacts{Message: "So far.", Progress: TeamProgress{HadTasks: true,
			NeedsAttention: openTasks}}), Finish{End: End{Code: 3, Text: "So far."}}},
		{"a task cannot be read", lead(LeadFacts{Message: "Done.", Progress: TeamProgress{
			Unreadable: []muster.UnreadableTask{{ID: 7, Why: "torn"}}}}), Finish{End: End{Code: 3,
			Text: "Done.\ntask #7 cannot be read (torn); mend it, or put it aside: muster doctor"}}},
		{"a reply that was cut off is no success", lead(LeadFacts{CutOff: "refused", Progress: canGoOn}),
			Finish{End: End{Code: 3, Text: "refused"}}},
		{"in a conversation the user gets the prompt where the run would end",
			inTalk(lead(LeadFacts{Message: "42"})), Listen{Done: true}},
		{"and where the turn was stopped", inTalk(lead(LeadFacts{OnHold: true, Progress: canGoOn})), Listen{}},
		{"a closed conversation ends like any other run", lead(LeadFacts{OnHold: true, Message: "42"}),
			Finish{End: End{Text: "42"}}},
	} {
		if got := Next(c.f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %T%+v, want %T%+v", c.name, got, got, c.want, c.want)
		}
	}
}

// A limit of the lead stops the team, outside of a conversation. So does trouble of a model that concerns every member.
func TestNextStopsTheTeam(t *testing.T) {
	finish, ok := Next(Facts{Stage: PhaseEnded, Lead: true,
		Phase: PhaseFacts{Err: errors.Join(errTest, errTurns), Answered: true}}).(Finish)
	var stop *TeamStop
	if !ok || !errors.As(finish.Err, &stop) || !errors.Is(finish.Err, errTest) {
		t.Errorf("%+v", finish)
	}
	for _, kind := range []llm.Kind{llm.Denied, llm.Spent, llm.Limited, llm.Overloaded, llm.Unreachable, llm.Incomplete} {
		finish, ok := Next(Facts{Stage: PhaseEnded, Phase: PhaseFacts{Err: errModel(kind)}}).(Finish)
		if !ok || !errors.As(finish.Err, &stop) || llm.KindOf(finish.Err) != kind {
			t.Errorf("%s: %+v", kind, finish)
		}
	}
}

// drawFacts draws any facts, also those that cannot come together.
func drawFacts(t *rapid.T) Facts {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	tasks := rapid.SampledFrom([][]muster.Task{nil, openTasks})
	errs := []error{nil, errTurns, errLoop, errTest, errModel(llm.ContextFull), errModel(llm.Overloaded),
		errModel(llm.Denied), errModel(llm.BadRequest)}
	requests := rapid.SampledFrom([][]muster.Request{nil, {{ID: "0000beef", From: "bob", To: muster.Lead}}})
	unreadable := rapid.SampledFrom([][]muster.UnreadableTask{nil, {{ID: 2}}})
	progress := TeamProgress{HadTasks: flag("had"), Open: tasks.Draw(t, "open"), NeedsAttention: tasks.Draw(t, "needy"),
		Landed:     rapid.IntRange(0, 2).Draw(t, "landed"),
		Working:    rapid.SampledFrom([][]muster.Name{nil, {"bob"}}).Draw(t, "working"),
		Unreadable: unreadable.Draw(t, "unreadable"), Unclaimable: tasks.Draw(t, "unclaimable"),
		HeldOutside: tasks.Draw(t, "outside"), Requests: requests.Draw(t, "requests"), Patient: flag("patient"),
		Stuck: rapid.SampledFrom([]string{"", "stuck"}).Draw(t, "stuck")}
	return Facts{
		Stage: Stage(rapid.IntRange(int(Starting), int(Left)).Draw(t, "stage")),
		Lead:  flag("lead"), InTalk: flag("talk"), WakingMail: flag("mail"), Replaced: flag("replaced"),
		Start: StartFacts{Opened: flag("opened"), Empty: flag("empty"), Recovered: flag("recovered"),
			PhaseOver: flag("over"), OwesReply: flag("owes"), Unneeded: flag("unneeded")},
		Phase: PhaseFacts{Err: rapid.SampledFrom(errs).Draw(t, "error"), ByUser: flag("user"),
			ShutdownGranted: flag("granted"), OwnModel: flag("own"), Answered: flag("answered"), Restarts: rapid.IntRange(0, 3).Draw(t, "restarts")},
		Idle: IdleFacts{Shutdown: rapid.SampledFrom([]muster.RequestID{"", "0000beef"}).Draw(t, "shutdown"),
			JobsFinished: flag("jobs"),
			Claim:        ClaimState(rapid.IntRange(int(NoClaim), int(LostClaim)).Draw(t, "claim")),
			Landing:      flag("landing"), TriedTask: flag("tried"), TimedOut: flag("out"), KeepsClaim: flag("keeps")},
		LeadAtRest: LeadFacts{ToHear: flag("hear"), Progress: progress, Message: "Done.", ToldStuck: flag("told"),
			CutOff: rapid.SampledFrom([]string{"", "cut"}).Draw(t, "cut"), OnHold: flag("hold")},
	}
}

func is[A Action](a Action) bool { _, ok := a.(A); return ok }

// A fact that is never drawn would make TestNextNever blind.
func TestEachFactIsDrawn(t *testing.T) {
	drawn, names := map[string]bool{}, map[string]bool{}
	var look func(name string, v reflect.Value)
	look = func(name string, v reflect.Value) {
		names[name] = true
		drawn[name] = drawn[name] || !v.IsZero()
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				look(name+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	facts := rapid.Custom(drawFacts)
	for seed := range 100 {
		look("Facts", reflect.ValueOf(facts.Example(seed)))
	}
	for name := range names {
		if !drawn[name] && name != "Facts.LeadAtRest.Progress.mayTake" { // by it Stuck is found
			t.Errorf("%s is always zero", name)
		}
	}
}

// Whatever the facts are: what must never happen, in each stage.
func TestNextNever(t *testing.T) {
	for stage := Starting; stage <= Left; stage++ {
		t.Run(fmt.Sprint(stage), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { never(t, stage) }) })
	}
}

func never(t *rapid.T, stage Stage) {
	f := drawFacts(t)
	f.Stage = stage
	a := Next(f)
	opens, _ := a.(OpenConversation)
	end, ends := a.(Finish)
	claims, waits, timesOut := is[ClaimTask](a), is[WaitForWork](a), is[TimeOut](a)
	leaves := is[Leave](a) || is[GrantShutdown](a) || is[GiveUp](a) || is[Rejoin](a)
	for what, happens := range map[string]bool{
		"no action":                            a == nil,
		"claims while it has a task":           claims && (f.Idle.Claim == Presented || f.Idle.Claim == LostClaim),
		"begins a task twice for one wake":     claims && f.Idle.TriedTask,
		"begins a task, and is to shut down":   claims && f.Idle.Shutdown != "",
		"begins a task before its mail":        claims && f.WakingMail,
		"waits while mail is there":            waits && f.WakingMail,
		"waits though it is to shut down":      waits && f.Idle.Shutdown != "",
		"waits with a claim that is lost":      waits && f.Idle.Claim == LostClaim,
		"waits with a job to hear of":          waits && f.Idle.JobsFinished,
		"times out, and keeps its claim":       timesOut && (f.Idle.KeepsClaim || !f.Idle.TimedOut),
		"times out with mail":                  timesOut && f.WakingMail,
		"the lead leaves like a teammate":      leaves && f.Lead && (f.Stage == Resting || f.Stage == PhaseEnded),
		"asks the model at rest":               is[RunPhase](a) && f.Stage != Ready && f.Stage != Retrying,
		"opens a conversation twice":           is[OpenConversation](a) && f.Start.Opened && !f.Start.Empty,
		"a teammate forgets what it knows":     opens.Afresh && !f.Lead,
		"listens without a conversation":       is[Listen](a) && !f.InTalk,
		"ends a run that goes on":              ends && f.Stage == Resting && end.End.Code == 0 && len(f.LeadAtRest.Progress.Open) > 0,
		"ends a conversation, or an idle life": ends && f.Stage == Resting && (f.InTalk || !f.Lead),
		"sleeps while nothing can move":        is[Sleep](a) && f.LeadAtRest.Progress.Stuck != "",
	} {
		if happens {
			t.Fatalf("%s: %T%+v", what, a, a)
		}
	}
}

func (p *life) factsAt(s Stage) Facts {
	p.Helper()
	p.stage = s
	f, err := p.Member.facts(p.Context())
	p.must(err)
	return f
}

// A member that starts looks at what its conversation holds, and whether the model owes a reply.
func TestTheFactsOfAStart(t *testing.T) {
	p := newParts(t, "alice")
	p.Member.start.Opened = true
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, Empty: true}) {
		t.Errorf("nothing was said: %+v", f)
	}
	p.must(p.conversation.say(t.Context(), nil, "Hello."))
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, OwesReply: true}) {
		t.Errorf("the model was asked: %+v", f)
	}
	p.reply(llm.StopEnd, "Hello.")
	p.phase.end()
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, PhaseOver: true}) {
		t.Errorf("the model has answered, and a tool has ended the phase: %+v", f)
	}
}

// A conversation that was started afresh helps again after three replies.
func TestTheFactsOfAPhase(t *testing.T) {
	for _, c := range []struct {
		restarts, replies, want int
	}{{0, 0, 0}, {2, minReplies - 1, 2}, {1, minReplies, 0}} {
		p := newParts(t, "alice")
		p.Member.err, p.byUser, p.ownModel = errTest, true, true
		p.phase.change(func(n *counters) { n.restarts, n.replies, n.leaves = c.restarts, c.replies, true })
		if f := p.factsAt(PhaseEnded).Phase; f != (PhaseFacts{Err: errTest, ByUser: true, ShutdownGranted: true,
			OwnModel: true, Restarts: c.want}) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// Mail is looked for wherever it decides what follows; after the shutdown also whether the member was spawned again.
func TestTheFactsOfMail(t *testing.T) {
	for _, stage := range []Stage{Resting, Leaving, Left} {
		p := newParts(t, "alice")
		p.must(p.presence.leave(t.Context()))
		if f := p.factsAt(stage); f.WakingMail || f.Replaced {
			t.Errorf("%d: no mail: %+v", stage, f)
		}
		p.send(muster.MailMessage, "bob", "alice", "Look.")
		if f := p.factsAt(stage); !f.WakingMail || f.Replaced {
			t.Errorf("%d: mail: %+v", stage, f)
		}
		_, err := p.config.Roster.Add(t.Context(), muster.Member{Name: "alice", Role: "coder", Prompt: "Work."})
		p.must(err)
		if f := p.factsAt(stage); !f.WakingMail || f.Replaced != (stage == Left) {
			t.Errorf("%d: spawned again: %+v", stage, f)
		}
	}
}
