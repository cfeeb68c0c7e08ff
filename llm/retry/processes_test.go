package retry_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/llmtest"
	"muster/llm/retry"
)

// The real minute takes a command of its own, which docs/models.md has.
var (
	window = flag.Duration("window", 4*time.Second, "the minute of TestProcesses")
	limit  = flag.Int("limit", 60, "the requests that its server takes in one")
	during = flag.Int("windows", 3, "how many of them it takes")
)

// clientVar makes the test binary one of the processes of TestProcesses: its value is the URL of the server. processVar
// has the name that the process tells it.
const (
	clientVar  = "MUSTER_TEST_LIMITS_URL"
	processVar = "MUSTER_TEST_LIMITS_PROCESS"
)

// TestMain runs the tests, or a process of TestProcesses.
func TestMain(m *testing.M) {
	flag.Parse()
	if url := os.Getenv(clientVar); url != "" {
		runClient(url)
		return
	}
	os.Exit(m.Run())
}

// runClient lets 8 agents ask a server for a while. It prints nothing but what goes wrong.
func runClient(url string) {
	all := &retry.Limiters{Dir: os.Getenv("XDG_STATE_HOME")}
	all.SetWindow(*window)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*during)*(*window))
	defer cancel()
	model := anthropic.New(anthropic.Options{Model: "m", BaseURL: url, Key: "one key", Known: small,
		Header: map[string]string{"X-Process": os.Getenv(processVar)}})
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			m := retry.Wrap(model, retry.Options{Limiter: all.Of(model)})
			for ctx.Err() == nil {
				if _, err := m.Reply(ctx, oneTurn, nil); err != nil && ctx.Err() == nil {
					fmt.Println(err)
					return
				}
			}
		})
	}
	g.Wait()
}

// oneTurn is a small request.
var oneTurn = llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "Well?"}}}}}

// serve answers requests as the gate decides.
func (g *gate) serve(behind http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, after := g.arrive(r.Header.Get("X-Process"), 0)
		if g.says {
			w.Header().Set("Anthropic-Ratelimit-Requests-Limit", strconv.Itoa(a.Requests.Limit))
			w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", strconv.Itoa(a.Requests.Remaining))
			w.Header().Set("Anthropic-Ratelimit-Requests-Reset", time.Now().Add(g.window).UTC().Format(time.RFC3339))
		}
		if a.Status == http.StatusOK {
			behind.ServeHTTP(w, r)
			return
		}
		if g.after {
			w.Header().Set("Retry-After", strconv.FormatFloat(after.Seconds(), 'f', 3, 64))
		}
		w.WriteHeader(a.Status)
	}
}

// Two processes of the system with 8 agents each keep the limit of a server, whatever it says.
func TestProcesses(t *testing.T) {
	if *window == 4*time.Second { // with the real minute, as docs/models.md runs it, it is not left out
		tier.All(t)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"nothing", "when to come back", "its limit"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			g := &gate{window: *window, requests: *limit, says: says == "its limit", after: says != "nothing"}
			server := httptest.NewServer(g.serve(llmtest.Handler(replies(good))))
			defer server.Close()
			state := t.TempDir()
			var both sync.WaitGroup
			for i := range 2 {
				both.Go(func() {
					cmd := exec.Command(self, "-window", window.String(), "-windows", strconv.Itoa(*during))
					cmd.Env = append(os.Environ(), clientVar+"="+server.URL, "XDG_STATE_HOME="+state,
						processVar+"="+strconv.Itoa(i))
					if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
						t.Errorf("%v: %s", err, out)
					}
				})
			}
			both.Wait()
			t.Log(g)
			most, _ := g.busiest()
			if most*20 > *limit*21 {
				t.Errorf("%d requests in a window, with a limit of %d", most, *limit)
			}
			a := g.accepted()
			one, other := a["0"], a["1"]
			if one+other < *limit*(*during)*3/4 || 3*min(one, other) < 2*max(one, other) {
				t.Errorf("one process had %d requests, the other %d", one, other)
			}
		})
	}
}
