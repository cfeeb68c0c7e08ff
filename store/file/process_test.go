package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/store/file"
)

// The tests here start this test's own program again, as other processes on the same state.

const jobVariable = "MUSTER_FILE_TEST_JOB"

// asProcess does a job if this program was started for one.
func asProcess() bool {
	job := strings.Fields(os.Getenv(jobVariable))
	if len(job) == 0 {
		return false
	}
	if err := work(job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// work is a job: what, where, who, how much.
func work(job []string) error {
	s, err := file.Open(job[1])
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	who := job[2]
	n, err := strconv.Atoi(job[3])
	if err != nil {
		return err
	}
	switch job[0] {
	case "mail":
		for i := range n {
			m := muster.Message{ID: muster.MessageID(fmt.Sprintf("%s-%d", who, i)), From: muster.Name(who),
				Content: "x"}
			if err := s.Inbox().Put(ctx, "lead", m); err != nil {
				return err
			}
		}
	case "hold":
		if _, err := s.Leases().Acquire(ctx, who); err != nil {
			return err
		}
		fmt.Println("held")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until our parent kills us
	}
	return nil
}

func start(ctx context.Context, job, root, who string, n int) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", jobVariable, job, root, who, n))
	c.Stderr = os.Stderr
	return c
}

func TestProcessesMailOneReader(t *testing.T) {
	const senders, each = 4, 50
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	watch := s.Inbox().Watch(t.Context(), "lead")
	var all sync.WaitGroup
	for p := range senders {
		all.Go(func() {
			if err := start(t.Context(), "mail", root, fmt.Sprintf("p%d", p), each).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	got := map[muster.MessageID]bool{}
	last := map[muster.Name]int{}
	for len(got) < senders*each {
		ms, end, err := s.Inbox().Peek(t.Context(), "lead", 0, 20)
		require.NoError(t, err)
		for _, m := range ms {
			if got[m.ID] {
				t.Fatalf("%s came twice", m.ID)
			}
			got[m.ID] = true
			if want := fmt.Sprintf("%s-%d", m.From, last[m.From]); string(m.ID) != want {
				t.Fatalf("%s came when %s was next", m.ID, want)
			}
			last[m.From]++
		}
		if len(ms) > 0 {
			require.NoError(t, s.Inbox().Drop(t.Context(), "lead", end))
			continue
		}
		select {
		case <-watch:
		case <-time.After(time.Minute):
			t.Fatalf("no hint after %d of %d mails", len(got), senders*each)
		}
	}
	all.Wait()
}

func TestKilledProcessFreesItsLease(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	defer s.Close()
	c := start(t.Context(), "hold", root, "host-1", 0)
	require.NoError(t, did(c.StdinPipe()))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.NoError(t, did(out.Read(make([]byte, 4))))
	if _, err := s.Leases().Acquire(t.Context(), "host-1"); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("it is held, and the error is %v", err)
	}
	if held, err := s.Leases().Held(t.Context(), "host-1"); err != nil || !held {
		t.Errorf("held: %v %v", held, err)
	}
	require.NoError(t, c.Process.Kill())
	_ = c.Wait() // it was killed
	if held, err := s.Leases().Held(t.Context(), "host-1"); err != nil || held {
		t.Errorf("held after the kill: %v %v", held, err)
	}
	if _, err := s.Leases().Acquire(t.Context(), "host-1"); err != nil {
		t.Error(err)
	}
}
