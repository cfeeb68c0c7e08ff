package web

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"muster"
	"muster/journal"
)

// big gives the world 1,000 tasks, 30 members and 600 events.
func (w *world) big() {
	w.Helper()
	w.add(1000)
	var names []muster.Name
	for i := 1; i < 30; i++ {
		names = append(names, muster.Name(fmt.Sprintf("member-%02d", i)))
	}
	w.members(names...)
	w.emit(1, 600)
}

// BenchmarkState reads the state of 1,000 tasks and 30 members as the page does.
func BenchmarkState(b *testing.B) {
	w := newWorld(b)
	w.big()
	for b.Loop() {
		w.get("/api/state", new(state))
	}
}

// BenchmarkFirstPaint measures the page with 1,000 tasks and 30 members: from the request for it to its first picture
// and to the drawn board. The server's part before is BenchmarkStart.
//
//	go test ./internal/web -run '^$' -bench 'FirstPaint|Start' -benchtime 5x
func BenchmarkFirstPaint(b *testing.B) {
	browser := chromium(b)
	w := newWorld(b)
	w.big()
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
	muster := built(b)
	w := newWorld(b)
	w.big()
	for b.Loop() {
		_, address, stop := serve(b, muster, w.dir)
		b.StopTimer()
		stop()
		b.StartTimer()
		_ = address
	}
}

// built builds the program as people install it, without failpoints and the race detector. It returns its path.
func built(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "muster")
	cmd := exec.Command("go", "build", "-o", path, "muster/cmd/muster")
	cmd.Env = append(os.Environ(), "HOME="+os.Getenv("MUSTER_TEST_HOME")) // which gittest.Main has noted: Go's caches are there
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
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
