//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/roster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/workspace"
	"muster/journal"
	"muster/store/file"
	"muster/team"
)

// A team whose process is gone before its run has ended has not ended: the terminal that is attached says so.
func TestAnAttachedTerminalSaysThatTheProcessIsGone(t *testing.T) {
	w := newWorld(t)
	s := require.Value(file.Open(w.dir))(t)
	defer s.Close()
	data, _ := json.Marshal(muster.Run{Team: "team", Goal: "a goal", Target: "muster/team", StartedAt: 1000})
	require.Value(s.Table(muster.TableTeam).Put(t.Context(), "run", data, muster.None))(t)
	require.Value(board.New(s, journal.New(s.Log())).Create(t.Context(), board.Draft{Subject: "open", CreatedBy: muster.User}))(t)
	r := roster.New(s, journal.New(s.Log()), "team")
	h := require.Value(r.Join(t.Context(), "the test"))(t)
	defer func() { _ = h.Release() }() // the test is over, and nobody takes the host over
	require.Value(r.Add(t.Context(), muster.Member{Name: muster.Lead, Role: "lead", Host: h.ID(), Status: muster.Working}))(t)
	in, types := io.Pipe() // it never ends
	told, says := io.Pipe()
	w.app.Stdin, w.app.Stderr = in, says
	w.app.Start = func(context.Context, Job) (team.Summary, error) { panic("a team beside the one that lives") }
	code := make(chan int, 1)
	go func() {
		defer says.Close()
		code <- w.app.Run(t.Context())
	}()
	require.Value(io.WriteString(types, "hi\n"))(t)
	out := bufio.NewReader(told)
	if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "a team is at work here, in another process") {
		t.Fatalf("%q %v", line, err)
	}
	require.NoError(t, h.Release())
	rest, err := io.ReadAll(out)
	if got := <-code; got != exitLeft || err != nil || !strings.HasSuffix(string(rest), "muster: the process of the team has died; the state is kept; 1 task is open\n        go on: muster resume   or, with words of yours: muster\n") {
		t.Errorf("exit %d, %v\n%s", got, err, rest)
	}
}

// How a run ended is written after its lead has shut down: until then its process is not gone.
func TestAProcessThatStillConcludesIsNotGone(t *testing.T) {
	w := newWorld(t)
	p := require.Value(w.app.open(t.Context()))(t)
	defer p.close()
	other := require.Value(file.Open(w.dir))(t)
	defer other.Close()
	lease := require.Value(other.Leases().Acquire(t.Context(), workspace.LeadLease))(t)
	if running, err := p.IsRunning(t.Context()); err != nil || !running {
		t.Error("over, while the lease is held")
	}
	require.NoError(t, lease.Release())
	if running, err := p.IsRunning(t.Context()); err != nil || running {
		t.Error("not over")
	}
}

// A run that was killed before its first task has stopped, too: the conversation says so, and what is typed goes on with it.
func TestAConversationGoesOnWithARunThatHasNoTask(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.terminal()
	words := w.words(`
speakers:
  lead:
    - do: [{bash: {command: 'kill -9 $RUN; sleep 5'}}]
    - cue: and the lexer
      say: Both, then.
`)
	// A confined command reaches no process outside.
	s.Keys(`MUSTER_SANDBOX_ENABLED=false sh -c 'RUN=$$ exec muster run "rewrite the parser" --environment-pass RUN --model script/"`+words+`"'`, "Enter")
	s.Wait(`Killed`)
	s.Keys("clear; muster", "Enter")
	s.Wait(`(?s)a team stopped here.*goal: rewrite the parser   no task is open.*/resume.*\n>`)
	s.Keys("and the lexer", "Enter")
	s.Wait(`(?s)lead +again +rewrite the parser.*Both, then\..*waits for you.*\n> $`)
	s.Keys("/quit", "Enter")
	s.Wait(`\n\$ $`)
	s.Cooked()
}

// A conversation in which nothing was said yet ends when it is interrupted, whether or not the pipe has brought a part
// of a line.
func TestAPipeIsInterruptedBeforeItSaysAnything(t *testing.T) {
	for name, said := range map[string]string{"no byte": "", "half a line": "hi th"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			words := w.words("speakers: {lead: [{say: Hello.}]}\n")
			in, types := io.Pipe()
			defer types.Close()
			w.app.Stdin, w.app.Env = in, append(w.app.Env, "MUSTER_MODEL=script/"+words)
			w.app.Start = func(context.Context, Job) (team.Summary, error) { panic("nothing was said") }
			ctx, stop := context.WithCancelCause(t.Context())
			go func() {
				_, _ = io.WriteString(types, said)
				stop(muster.CauseUser)
			}()
			w.run(ctx, exitInterrupted)
		})
	}
}
