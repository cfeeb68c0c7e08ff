package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// breaking is a server that dies in the middle of each answer.
type breaking struct {
	net.Listener
	states atomic.Int32 // that were begun
}

// breakAt listens at an address. It sends half an answer to each request, and resets the connection, as a process does
// that is killed.
func breakAt(t *testing.T, addr string) *breaking {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &breaking{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test goes on with the real server
			}
			r, err := http.ReadRequest(bufio.NewReader(c))
			half := "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"has_team\":true,\"tasks\":["
			if err == nil && r.URL.Path == "/api/events" {
				half = "Content-Type: text/event-stream\r\n\r\nevent: changed\ndata: {}\n\nid: 999999999\ndata: [{\"pos\":9999"
			}
			if err == nil && r.URL.Path == "/api/state" {
				b.states.Add(1)
			}
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n" + half)) // the page may have gone
			_ = c.Close()
		}
	}()
	return b
}

// A server that dies in the middle of its answers is missed, and found again when it is back: the page shows what has
// happened meanwhile, and nothing of the half answers.
func testLost(t *testing.T, browser context.Context) {
	w := newWorld(t)
	w.add(3)
	w.members("alice")
	w.emit(1, 5)
	w.aliceAsks("a plan")
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 1 && document.querySelector("#link").textContent === "live"`)
	token := w.server.token
	w.stop()
	b := breakAt(t, w.addr)
	p.until(`document.querySelector("#link").classList.contains("lost") && document.querySelector("#link").textContent.startsWith("connection lost")`)
	for b.states.Load() == 0 {
		p.until(`document.querySelector("#link").textContent !== ""`)
	}
	p.until(`document.querySelectorAll(".need").length === 1 && document.querySelectorAll(".node").length === 3`)
	b.Close()
	w.emit(901, 901)
	w.start(w.addr, token)
	p.until(`document.querySelector("#link").textContent === "live" && document.querySelector("#trouble").hidden`)
	p.until(`document.querySelector("#events li:last-child")?.innerText.includes("901 task 901")`)
	if twice := value[string](p, `[...document.querySelectorAll("#events li")].map((e) => e.innerText).filter((e, i, all) => all.indexOf(e) !== i).join("; ")`); twice != "" {
		t.Errorf("the timeline has twice: %s", twice)
	}
}
