package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"muster"
)

// changes are all paths that change something, each with a body that would.
var changes = map[string]string{
	"/api/answer":  `{"id":"00000001","approve":true}`,
	"/api/mail":    `{"to":"lead","text":"stop"}`,
	"/api/comment": `{"task":1,"file":"README","line":1,"text":"no"}`,
	"/api/retry":   `{"task":1}`,
	"/api/take":    `{"shown":[]}`,
	"/api/start":   `{"goal":"another one"}`,
	"/api/resume":  `{}`,
	"/api/stop":    `{}`,
	"/api/merge":   `{}`,
}

func TestTokenOpensThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := func(path string) *http.Request {
		r := w.request(http.MethodGet, path, "")
		r.Header.Del("Cookie")
		return r
	}
	for _, path := range []string{"/", "/app.js", "/api/state", "/api/events", "/api/task/1", "/nothing", "/?token=", "/?token=" + strings.Repeat("0", 64)} {
		if res, body := w.send(plain(path)); res.StatusCode != http.StatusUnauthorized || strings.Contains(body, "<") {
			t.Errorf("%s without the token: %s %q", path, res.Status, body)
		}
	}
	res, _ := w.send(plain("/?token=" + w.server.token))
	if len(w.server.token) != 64 || res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Fatalf("%s to %q", res.Status, res.Header.Get("Location"))
	}
	c := res.Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Value != w.server.token {
		t.Fatalf("cookies %v", c)
	}
	r := plain("/")
	r.AddCookie(c[0])
	res, body := w.send(r)
	if res.StatusCode != http.StatusOK || !strings.Contains(body, "<title>muster</title>") {
		t.Errorf("with the cookie: %s\n%s", res.Status, body)
	}
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTicketOpensThePageOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ticket, _ := strings.Cut(w.server.TicketURL(addrOnly{w.addr}), "/?token=")
	for i, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		r := w.request(http.MethodGet, "/?token="+ticket, "")
		r.Header.Del("Cookie")
		if res, _ := w.send(r); res.StatusCode != want {
			t.Errorf("try %d: %s", i+1, res.Status)
		}
	}
	r := w.request(http.MethodGet, "/api/state", "")
	r.Header.Set("Cookie", strings.Replace(r.Header.Get("Cookie"), w.server.token, ticket, 1))
	if res, _ := w.send(r); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the ticket as a cookie: %s", res.Status)
	}
}

// A page that somebody has led to this port by a name of their own sends that name.
func TestForeignHostIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := w.addr[strings.LastIndexByte(w.addr, ':'):]
	for host, want := range map[string]int{
		w.addr: http.StatusOK, "localhost" + port: http.StatusOK,
		"evil.example" + port: http.StatusForbidden, "127.0.0.1": http.StatusForbidden, "localhost": http.StatusForbidden,
		"127.0.0.1.evil.example" + port: http.StatusForbidden, "localhost.:1": http.StatusForbidden, "[::1]" + port: http.StatusForbidden,
		"0.0.0.0" + port: http.StatusForbidden,
	} {
		for _, path := range []string{"/api/state", "/?token=" + w.server.token} {
			r := w.request(http.MethodGet, path, "")
			r.Host = host
			res, _ := w.send(r)
			if ok := res.StatusCode < 400; ok != (want == http.StatusOK) || len(res.Cookies()) > 0 && want != http.StatusOK {
				t.Errorf("%s of host %q: %s, want %d", path, host, res.Status, want)
			}
		}
	}
}

// Where the port is forwarded, the page has another name, and what forwards it may say localhost here.
func TestNamedHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members()
	w.server.Hosts = []string{"Box.example.dev", "localhost:8080"}
	for _, c := range []struct {
		host, origin string
		ok           bool
	}{
		{"box.example.dev", "https://box.example.dev", true}, {"box.example.dev:7310", "http://box.example.dev:7310", true},
		{w.addr, "https://box.example.dev", true}, {"localhost:8080", "http://localhost:8080", true},
		{"localhost:8081", "http://localhost:8081", false}, {"evil.box.example.dev", "https://box.example.dev", false},
		{"box.example.dev", "https://evil.example", false}, {w.addr, "http://localhost:8081", false}, {w.addr, "null", false},
		{"box.example.dev.evil.example", "https://box.example.dev.evil.example", false},
	} {
		r := w.request(http.MethodPost, "/api/mail", `{"to":"lead","text":"x"}`)
		r.Host = c.host
		r.Header.Set("Origin", c.origin)
		if res, answer := w.send(r); (res.StatusCode == http.StatusOK) != c.ok {
			t.Errorf("%s from %s: %s %s", c.host, c.origin, res.Status, answer)
		}
	}
}

func TestForeignPagesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	q := w.aliceAsks("do it")
	w.server.Launch = func(_ context.Context, goal string) error {
		t.Errorf("a team starts: %q", goal)
		return nil
	}
	w.server.Merge = func(context.Context) (string, error) { t.Error("the work is taken"); return "", nil }
	for path, body := range changes {
		body = strings.Replace(body, "00000001", string(q.ID), 1)
		for name, spoil := range map[string]func(*http.Request){
			"a foreign origin":     func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"the origin null":      func(r *http.Request) { r.Header.Set("Origin", "null") },
			"another port":         func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
			"https":                func(r *http.Request) { r.Header.Set("Origin", "https://"+w.addr) },
			"no origin":            func(r *http.Request) { r.Header.Del("Origin") },
			"a cross-site fetch":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"a neighbour's port":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"a form":               func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
			"text":                 func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; application/json") },
			"no type":              func(r *http.Request) { r.Header.Del("Content-Type") },
			"no cookie":            func(r *http.Request) { r.Header.Del("Cookie") },
			"a foreign host":       func(r *http.Request) { r.Host = "evil.example" },
			"GET":                  func(r *http.Request) { r.Method = http.MethodGet },
			"HEAD":                 func(r *http.Request) { r.Method = http.MethodHead },
			"PUT":                  func(r *http.Request) { r.Method = http.MethodPut },
			"the method overriden": func(r *http.Request) { r.Method = http.MethodGet; r.Header.Set("X-HTTP-Method-Override", "POST") },
		} {
			r := w.request(http.MethodPost, path, body)
			spoil(r)
			if res, answer := w.send(r); res.StatusCode < 400 {
				t.Errorf("%s with %s: %s %s", path, name, res.Status, answer)
			}
		}
	}
	mail, err := w.team.Mail().Pending(t.Context(), muster.Lead)
	if err != nil || len(mail) != 1 { // that of the request
		t.Errorf("mail %v, %v", mail, err)
	}
	if now, err := w.team.Requests().Get(t.Context(), q.ID); err != nil || now.Status != muster.RequestPending {
		t.Errorf("the request is %v, %v", now.Status, err)
	}
	if code, got := w.post("/api/mail", map[string]any{"to": "lead", "text": "go on"}); code != http.StatusOK {
		t.Errorf("mail of the page itself: %d %v", code, got)
	}
}

func TestBodiesAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members()
	for body, path := range map[string]string{
		`{"to":"lead","text":" "}`: "/api/mail", `{"to":"lead","texte":"x"}`: "/api/mail", `{"to":`: "/api/mail",
		`{"goal":" "}`: "/api/start", `{"goal":1}`: "/api/start", `{"now":true}`: "/api/stop", `[]`: "/api/merge", `{"goal":"x"}`: "/api/resume",
		`{"to":"lead","text":"` + strings.Repeat("x", maxBody) + `"}`: "/api/mail", `{"id":"00000001","text":"x"}`: "/api/answer",
	} {
		if res, answer := w.send(w.request(http.MethodPost, path, body)); res.StatusCode != http.StatusBadRequest || !strings.Contains(answer, `"error"`) {
			t.Errorf("%.60s: %s %s", body, res.Status, answer)
		}
	}
	for path, body := range map[string]string{"/api/mail": `{"to":"nobody","text":"x"}`, "/api/answer": `{"id":"00000001","approve":true}`} {
		if res, answer := w.send(w.request(http.MethodPost, path, body)); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s %s", path, res.Status, answer)
		}
	}
}

func TestListenOnThisMachineAlone(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.168.1.1:0", "example.org:80", "127.0.0.1", "lokalhost:0"} {
		l, err := Listen(t.Context(), addr)
		if err == nil {
			l.Close()
		}
		if muster.HintOf(err) == "" {
			t.Errorf("%s: %v, without a hint", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0"} {
		l, err := Listen(t.Context(), addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if !strings.HasPrefix(l.Addr().String(), "127.") {
			t.Errorf("%s listens on %s", addr, l.Addr())
		}
		l.Close()
	}
}
