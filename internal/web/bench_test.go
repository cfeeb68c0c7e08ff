package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/testing/gittest"
	"muster/internal/testing/race"
	"muster/journal"
)

// BenchmarkState reads the state of 1,000 tasks and 30 members as the page does.
func BenchmarkState(b *testing.B) {
	w := newWorld(b)
	bigScene(w)
	for b.Loop() {
		w.get("/api/state", new(state))
	}
}

// BenchmarkFirstPaint measures the page with 1,000 tasks and 30 members: from the request for it to its first picture
// and to the drawn board. The server's part before is BenchmarkStart.
//
//	go test ./internal/web -run '^$' -bench 'FirstPaint|Start|Idle' -benchtime 5x
func BenchmarkFirstPaint(b *testing.B) {
	browser := chromium(b)
	w := newWorld(b)
	bigScene(w)
	var paint, board float64
	for b.Loop() {
		p := w.open(browser, 1440, 900)
		p.until(`document.querySelectorAll(".node").length > 200 && performance.getEntriesByName("board").length > 0`)
		paint += value[float64](p, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN`)
		board += value[float64](p, `performance.getEntriesByName("board")[0].startTime`)
		p.do(chromedp.Navigate("about:blank"))
	}
	b.ReportMetric(paint/float64(b.N), "ms-to-first-paint")
	b.ReportMetric(board/float64(b.N), "ms-to-board")
}

// BenchmarkStart measures the program: from its start to the answer with the state of 1,000 tasks.
func BenchmarkStart(b *testing.B) {
	muster := program(b)
	w := newWorld(b)
	bigScene(w)
	for b.Loop() {
		_, address, stop := serve(b, muster, w.dir)
		b.StopTimer()
		stop()
		b.StartTimer()
		_ = address
	}
}

// BenchmarkIdle measures what the program and the page use of a core while nothing happens, for twenty seconds.
//
//	go test ./internal/web -run '^$' -bench Idle -benchtime 1x
func BenchmarkIdle(b *testing.B) {
	browser := chromium(b)
	muster := program(b)
	w := newWorld(b)
	bigScene(w)
	for b.Loop() {
		process, address, stop := serve(b, muster, w.dir)
		ctx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
		p := &tab{b, ctx}
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
			b.Fatal(err)
		}
		p.until(`document.querySelectorAll(".node").length > 200`)
		pages := pagesOf(b, process.Pid)
		<-time.After(5 * time.Second) // what it begins with is drawn, and the browser has tidied up behind it
		const idle = 20 * time.Second
		before, beforePages := cpu(b, process.Pid), cpu(b, pages...)
		<-time.After(idle)
		b.ReportMetric(100*float64(cpu(b, process.Pid)-before)/float64(idle), "%core-server")
		b.ReportMetric(100*float64(cpu(b, pages...)-beforePages)/float64(idle), "%core-page")
		stop()
		p.do(chromedp.Navigate("about:blank")) // it would ask again and again for the server that has ended
	}
}

// program builds the program as the test was built, so that nothing is compiled a second time.
func program(b testing.TB) string {
	b.Helper()
	path, caches := filepath.Join(b.TempDir(), "muster"), b.TempDir()
	args := []string{"build", "-o", path}
	if race.Enabled {
		args = append(args, "-race")
	}
	if failpoint.Enabled {
		args = append(args, "-tags", "failpoint")
	}
	gittest.GoCache(b, caches) // the home of a test is empty
	cmd := exec.Command("go", append(args, "muster/cmd/muster")...)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(caches, "go-build"))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// serve starts muster web and waits for its first state.
func serve(b testing.TB, path, dir string, env ...string) (p *os.Process, address string, stop func()) {
	b.Helper()
	c := exec.CommandContext(context.WithoutCancel(b.Context()), path, "web", "--no-open")
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, &address); err != nil {
		b.Fatal(err)
	}
	base, _, _ := strings.Cut(address, "?")
	res, err := http.DefaultTransport.RoundTrip(request(b, address, nil))
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	state, err := http.DefaultTransport.RoundTrip(request(b, base+"api/state", res.Cookies()))
	if err != nil || state.StatusCode != http.StatusOK {
		b.Fatal(err, state.Status)
	}
	state.Body.Close()
	return c.Process, address, func() { _ = c.Process.Signal(syscall.SIGINT); _ = c.Wait() }
}

func request(b testing.TB, url string, cookies []*http.Cookie) *http.Request {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

// pagesOf returns the processes that this one has started and all of theirs, without the program itself: the browser.
func pagesOf(b *testing.B, except int) (all []int) {
	b.Helper()
	for wave := []int{os.Getpid()}; len(wave) > 0; {
		var next []int
		for _, pid := range wave {
			children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
			for _, path := range children {
				data, _ := os.ReadFile(path) // it may have ended
				for _, f := range strings.Fields(string(data)) {
					if n, err := strconv.Atoi(f); err == nil && n != except {
						next = append(next, n)
					}
				}
			}
		}
		all, wave = append(all, next...), next
	}
	return all
}

// cpu returns what processes have used of the processor so far.
func cpu(b *testing.B, pids ...int) (used time.Duration) {
	b.Helper()
	for _, pid := range pids {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // it may have ended
		_, after, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(after); len(f) > 12 {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			used += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return used
}

// BenchmarkBusy sends 10,000 events a second for a second to a page, and reports the longest time from the writing of
// an event to its arrival, and how many were lost. The events are the commonest of a run.
//
//	go test ./internal/web -run '^$' -bench Busy -benchtime 3x
func BenchmarkBusy(b *testing.B) {
	const perSecond, step = 10_000, 100
	w := newWorld(b)
	var worst time.Duration
	lost := 0
	for b.Loop() {
		written := make([]time.Time, perSecond)
		p := &page{}
		connected := make(chan struct{})
		over := make(chan struct{})
		end, err := w.journal.Tail(b.Context(), 0)
		if err != nil {
			b.Fatal(err)
		}
		p.query, p.connected = fmt.Sprintf("?after=%d", uint64(end)), connected
		seen := 0
		go func() {
			defer close(over)
			p.read(b.Context(), w, func() bool {
				now := time.Now()
				for ; seen < len(p.texts); seen++ {
					worst = max(worst, now.Sub(written[seen]))
				}
				return seen >= perSecond
			})
		}()
		<-connected
		tick := time.NewTicker(time.Second * step / perSecond)
		for i := 0; i < perSecond; i += step {
			<-tick.C
			var lines [][]byte
			for n := i; n < i+step; n++ {
				written[n] = time.Now()
				line, err := muster.MarshalLine(muster.Event{Kind: journal.TaskCreated, At: muster.UnixTime(time.Now()), Member: muster.Lead,
					Task: muster.TaskID(n + 1), Fields: map[string]any{"subject": fmt.Sprintf("task %d", n+1)}})
				if err != nil {
					b.Fatal(err)
				}
				lines = append(lines, line)
			}
			if _, err := w.store.Log().Append(b.Context(), muster.StreamEvents, muster.Anywhere, lines...); err != nil {
				b.Fatal(err)
			}
		}
		tick.Stop()
		<-over
		lost += perSecond - len(p.texts)
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst-lag")
	b.ReportMetric(float64(lost), "lost")
}
