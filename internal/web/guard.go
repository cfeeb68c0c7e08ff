package web

import (
	"crypto/subtle"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster"
)

// policy lets the page load and connect to nothing but its server, and nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses what does not come from the page. The order matters: a wrong host is not even told whether a token is
// right, and no handler runs before all is checked.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		name, ok := s.checkHost(r.Host)
		if !ok {
			refuse(w, http.StatusForbidden, "this server answers only to the address that muster web has printed; "+
				"where it is reached by another name: muster web --host NAME")
			return
		}
		if r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has("token") {
			s.exchange(w, r, name)
			return
		}
		if c, err := r.Cookie(name); err != nil || !same(c.Value, s.token) {
			refuse(w, http.StatusUnauthorized, "open the address that muster web has printed, with its token; "+
				"each start of it has another one")
			return
		}
		if status, why := checkSource(r, s.isNamed); why != "" {
			refuse(w, status, why)
			return
		}
		// What is sent is held in memory while it is read.
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// setHeaders sets what browsers have to know of each answer.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// checkHost reports whether a request was sent to the address that is listened on, to localhost at its port, or to one
// of Hosts. A browser that another site has led here sends the name of that site. cookie is the name of the cookie:
// browsers send cookies to all ports of a machine, so that each port needs a name of its own.
func (s *Server) checkHost(host string) (cookie string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, _ := net.SplitHostPort(s.host) // it is an address of the listener
	return "muster-" + port, host == s.host || host == net.JoinHostPort("localhost", port) || s.isNamed(host)
}

// isNamed reports whether a host, with or without a port, is one of Hosts. A name without a port is for all ports.
func (s *Server) isNamed(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return slices.ContainsFunc(s.Hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, name)
	})
}

// exchange takes the token out of the address and makes it a cookie. A ticket is good for one time.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, cookie string) {
	token := r.URL.Query().Get("token")
	s.mu.Lock()
	// Looking and deleting are one step, so that of two who use a ticket at once one gets in.
	isTicket := s.tickets[token]
	delete(s.tickets, token)
	s.mu.Unlock()
	if !isTicket && !same(token, s.token) {
		refuse(w, http.StatusUnauthorized, "this token is not that of the running muster web, or was used before; "+
			"open the address that it has printed")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	// The token leaves the address, so that it stays out of the history and of what people copy from there.
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// same compares in a time that tells nothing of the token.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// checkSource refuses what a page of another origin has sent. Browsers name the origin with each POST, and pages cannot
// send JSON to another origin without asking first, which this server never allows. isNamed says which origins are the
// page's beside that of the request's host; nil: none is.
func checkSource(r *http.Request, isNamed func(host string) bool) (status int, why string) {
	origin := r.Header.Get("Origin")
	// A wrong origin is refused for GET too: its page cannot read the answer, but could measure how long it takes. What
	// forwards to here may have encrypted, and may say localhost in place of the name in the browser.
	_, outer, _ := strings.Cut(origin, "://")
	if origin != "" && origin != "http://"+r.Host && (isNamed == nil || !isNamed(outer)) {
		return http.StatusForbidden, "the request comes from another page"
	}
	// Other ports of this machine are the same site, and may be anybody's.
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return http.StatusForbidden, "the request comes from another page"
	}
	if r.Method == http.MethodGet {
		return 0, ""
	}
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, "only GET and POST are understood"
	}
	// Every browser names the origin of a POST, so whoever names none is not the page.
	if origin == "" {
		return http.StatusForbidden, "the request does not say from which page it comes"
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, "the request is not of the type application/json"
	}
	return 0, ""
}

// refuse answers with why, as plain text: nothing of the page runs for somebody without the token.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("muster: " + why + "\n"))
}

// refusal is the error for what may not be done from where it was asked. It says why.
type refusal string

func (r refusal) Error() string { return string(r) }

// statuses are those of errors by their codes. Others are failures of this program or of its machine.
var statuses = map[muster.Code]int{muster.NotFound: http.StatusNotFound, muster.Invalid: http.StatusBadRequest,
	muster.Held: http.StatusConflict, muster.Fenced: http.StatusConflict}

// answer returns a handler that sends what do returns as JSON: a document, or an error with what to do about it.
func (s *Server) answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r)
		if why, ok := errors.AsType[refusal](err); ok {
			refuse(w, http.StatusForbidden, string(why))
			return
		}
		status := http.StatusOK
		if err != nil {
			status = http.StatusInternalServerError
			if e, ok := errors.AsType[*muster.Error](err); ok && statuses[e.Code] != 0 {
				status = statuses[e.Code]
			}
			v = map[string]string{"error": muster.PlainText(err), "hint": muster.HintOf(err)}
		}
		data, err := s.encode(v)
		if err != nil {
			refuse(w, http.StatusInternalServerError, muster.PlainText(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(data) // the page has gone
	}
}

func (s *Server) encode(v any) ([]byte, error) {
	// Secrets are looked for in the encoded text, because a document may have them in any of its fields.
	data, err := muster.MarshalLine(v)
	if err == nil && s.Hide != nil {
		data = s.Hide(data)
	}
	return data, err
}
