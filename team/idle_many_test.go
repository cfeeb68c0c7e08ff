package team_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"muster"
	"muster/internal/board"
	"muster/internal/roster"
	"muster/journal"
	"muster/llm"
	"muster/store/file"
	"muster/team"
)

// many is how many idle teammates one process has here.
const many = 1000

// maxMemory is what they may take, in bytes: heap and stacks, after a collection.
const maxMemory = 100 << 20

// Idle teammates cost a goroutine, a hint of their inbox, and nothing else: no lease, no watch of the board, no
// conversation in memory, no write however long they wait. One new task wakes one of them.
func TestThousandIdle(t *testing.T) { // not parallel: it counts what the process has
	bubble(t, func(h *house) {
		m := newMeter(h.store.Handle())
		crew := &crew{}
		talk := team.NewConversation()
		opened := h.open(crew, func(c *team.Config) {
			c.Store, c.Teammates, c.Conversation, c.Limits.IdleTimeout = m, many, talk, -1
		})
		r := h.begin(func(ctx context.Context) (team.Summary, error) { return opened.Run(ctx, "the goal", team.Start{}) })
		h.until("the lead has spoken", is(journal.TurnEnded, muster.Lead))
		synctest.Wait()
		leases, watches, _ := m.counts()
		goroutines := runtime.NumGoroutine()

		h.spawn(many)
		synctest.Wait()
		if n := h.count(func(e muster.Event) bool { return e.Kind == journal.MemberIdle && e.Member != muster.Lead }); n != many {
			t.Fatalf("%d of %d are idle\n%s", n, many, h.tail())
		}
		leasesNow, watchesNow, boxes := m.counts()
		if leasesNow != leases {
			t.Errorf("%d leases with the lead alone, %d with %d teammates", leases, leasesNow, many)
		}
		if watchesNow != watches+many || boxes != 1 {
			t.Errorf("%d watches with the lead alone, %d with %d teammates, at most %d of one inbox", watches, watchesNow, many, boxes)
		}
		if now := runtime.NumGoroutine() - goroutines; now > many+many/100 { // one each, and a few that are not theirs
			t.Errorf("%d teammates have %d goroutines", many, now)
		}
		crew.releasedAll(t)
		within(t, maxMemory)

		time.Sleep(time.Minute) // what is gathered before it is written, for other programs to read, is written
		synctest.Wait()
		m.forget()
		crew.forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		if puts, asked := m.written(), crew.forget(); len(puts) != 0 || len(asked) != 0 {
			t.Errorf("in an hour with nothing to do %d members were asked, and written was %v", len(asked), puts)
		}

		m.forget()
		task, err := h.board.Create(h.Context(), board.Draft{Subject: "look around"})
		if err != nil {
			t.Fatal(err)
		}
		h.until("the task is completed", is(journal.TaskCompleted, ""))
		synctest.Wait()
		who := h.task(task.ID).Owner
		for name, asked := range crew.forget() {
			if name != who && name != muster.Lead {
				t.Errorf("%s was asked %d times: the task is %s's", name, asked, who)
			}
		}
		for key, times := range m.written() {
			if name, member := strings.CutPrefix(key, muster.TableMembers+"/"); member && name != string(who) && name != string(muster.Lead) {
				t.Errorf("%s was written %d times: the task is %s's", key, times, who)
			}
		}
		// Who is woken looks at its mail and at the requests. Everybody's mail is looked at by the lead too: equally often.
		reads := m.looked()
		looks := map[int]int{}
		for i := range many {
			if name := fmt.Sprintf("t%d", i); name != string(who) {
				looks[reads["inbox/"+name]]++
			}
		}
		if n := reads["table/"+muster.TableRequests]; len(looks) != 1 || n > many/10 {
			t.Errorf("others than %s were woken: the requests were read %d times, and these are how often how many inboxes were: %v", who, n, looks)
		}
		crew.releasedAll(t)
		within(t, maxMemory)
		talk.Close()
		r.ends(0, time.Minute)
	})
}

// On files they share the process's one watcher, host and lease, however many they are.
func TestIdleOnFiles(t *testing.T) { // not parallel, see above
	const many = 100
	w := newWorld(t)
	store, err := file.Open(w.root)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	crew := &crew{}
	talk := team.NewConversation()
	opened, err := team.Open(t.Context(), team.Config{Dir: w.root, Store: store, Name: "demo", Teammates: many, Conversation: talk,
		Limits: team.Limits{IdleTimeout: -1}, Model: func(string) (llm.Model, error) { return crew, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := opened.Run(ctx, "the goal", team.Start{})
		ended <- err
	}()
	var after muster.Pos
	await := func(n int, fits func(muster.Event) bool) {
		t.Helper()
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		for e, err := range opened.Events(limited, after) {
			if err != nil {
				t.Fatal(err)
			}
			after = e.Pos
			if fits(e.Event) {
				n--
			}
			if n == 0 {
				return
			}
		}
		t.Fatalf("%d are missing\n%s", n, w.tail())
	}
	await(1, is(journal.TurnEnded, muster.Lead))
	watchers := descriptors("inotify")

	other, err := file.Open(w.root)
	if err != nil {
		t.Fatal(err)
	}
	spawn(t, roster.New(other, journal.New(other.Log()), "demo"), many)
	other.Close()
	await(many, func(e muster.Event) bool { return e.Kind == journal.MemberIdle && e.Member != muster.Lead })
	if now := descriptors("inotify"); now != watchers {
		t.Errorf("%d watchers of the file system with the lead alone, %d with %d teammates", watchers, now, many)
	}
	if slots, _ := filepath.Glob(filepath.Join(w.root, ".team", "hosts", "*.json")); len(slots) > 1 {
		t.Errorf("they are hosted by %d hosts", len(slots))
	}
	talk.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// spawn records n teammates as another process would: the living team starts them.
func (h *house) spawn(n int) {
	h.Helper()
	spawn(h.T, h.roster, n)
}

func spawn(t *testing.T, r *roster.Roster, n int) {
	t.Helper()
	for i := range n {
		if _, err := r.Add(t.Context(), muster.Member{Name: muster.Name(fmt.Sprintf("t%d", i)), Role: "coder",
			Prompt: "Wait for tasks.", StartedBy: muster.User}); err != nil {
			t.Fatal(err)
		}
	}
}

// crew is a model of all members: who has a task completes it, everybody else says a word. It knows which of the
// conversations that it was shown are still in memory.
type crew struct {
	mu    sync.Mutex
	shown map[muster.Name]weak.Pointer[llm.Part] // the first part of each conversation
	asked map[muster.Name]int
}

func (c *crew) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	c.mu.Lock()
	if c.shown == nil {
		c.shown, c.asked = map[muster.Name]weak.Pointer[llm.Part]{}, map[muster.Name]int{}
	}
	c.shown[muster.Name(who)] = weak.Make(&r.Messages[0].Parts[0])
	c.asked[muster.Name(who)]++
	c.mu.Unlock()
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		if text, ok := p.(llm.Text); ok && who != string(muster.Lead) && strings.Contains(text.Text, "Task #1: look around") {
			return calls("done", "complete_task", in{"task_id": 1, "summary": "There was nothing to do."})
		}
	}
	return says("Ready.")
}

// forget returns who was asked how often since the last time.
func (c *crew) forget() map[muster.Name]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = map[muster.Name]int{}
	return asked
}

// releasedAll fails when the conversation of one of many teammates is still in memory.
func (c *crew) releasedAll(t *testing.T) {
	t.Helper()
	runtime.GC()
	c.mu.Lock()
	defer c.mu.Unlock()
	held := 0
	for who, p := range c.shown {
		if who != muster.Lead && p.Value() != nil {
			held++
		}
	}
	if len(c.shown) < many || held != 0 {
		t.Errorf("%d of %d conversations are in memory", held, len(c.shown))
	}
}

// within fails when the process has more memory in use.
func within(t *testing.T, limit uint64) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("heap %d KB, stacks %d KB", m.HeapAlloc>>10, m.StackInuse>>10)
	if used := m.HeapAlloc + m.StackInuse; used > limit {
		t.Errorf("%d MB are in use, %d may be", used>>20, limit>>20)
	}
}

// descriptors counts this process's open files of a kind; 0 where the system does not say.
func descriptors(kind string) (n int) {
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, kind) {
			n++
		}
	}
	return n
}
