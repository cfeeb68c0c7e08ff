package web

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"muster"
	"muster/internal/testing/gittest"
)

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
		address, stop := serve(b, muster, w.dir)
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
	cmd.Env = gittest.UsersEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}
