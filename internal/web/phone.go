package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"muster"
)

// The limits of a pairing.
const (
	// pairingIdle is how long a code or a paired device may go without use.
	pairingIdle = 15 * time.Minute
	// mostWrong is the number of wrong codes that close a pairing.
	mostWrong = 5
)

// Phone is an entrance to the page for one device of the local network. Nothing is encrypted there, so it is open only
// to a device that was paired:
//
//   - A code, which Invite makes, pairs the first device that sends it, and is void afterwards. The device has a secret
//     of its own in a cookie.
//   - Five wrong codes close the pairing.
//   - The pairing ends when it was not used for 15 minutes. So does a code.
//   - The Host and the Origin of a request are the address that is listened on, and nothing else.
//   - The device does only what Server.routes has for a phone: it reads, and it answers.
//
// NewPhone makes one.
type Phone struct {
	server *Server
	l      net.Listener
	host   string
	// tell is called with what has happened to the pairing.
	tell func(PhoneEvent)

	mu      sync.Mutex
	pairing *pairing // nil: there is none
}

// PhoneEvent is what has happened to a pairing.
type PhoneEvent int

// What can happen to a pairing.
const (
	PhonePaired PhoneEvent = iota // a device has used the code
	PhoneIdle                     // it has ended, because it was not used
	PhoneClosed                   // it has ended, because wrong codes have come
)

// pairing is a code, and the device that has used it.
type pairing struct {
	code   string
	secret string // of the device's cookie; "": no device has used the code
	wrong  int    // codes that were wrong

	used  time.Time // the last time
	timer *time.Timer
	ended chan struct{} // closed when the pairing ends, and with it what is sent to the device
}

// NewPhone returns an entrance to a server's page at an address of the local network. tell is called with what happens
// to its pairings. No device gets in before Invite.
func NewPhone(s *Server, l net.Listener, tell func(PhoneEvent)) *Phone {
	return &Phone{server: s, l: l, host: l.Addr().String(), tell: tell}
}

// ListenPhone listens at an address of the local network, on a port that is free. The error is Invalid for an address
// that is not private.
func ListenPhone(ctx context.Context, addr netip.Addr) (net.Listener, error) {
	if !addr.IsPrivate() {
		return nil, muster.Errorf(muster.Invalid, "%s is no address of a local network", addr).
			WithHint("as in --phone=192.168.1.23")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "cannot listen on %s: %w", addr, err)
	}
	return l, nil
}

// Serve answers until ctx ends.
func (p *Phone) Serve(ctx context.Context) error {
	defer p.over(nil)
	return serveAt(ctx, p.l, p.handler())
}

// Invite returns an address that pairs the first device that opens it. A pairing before it ends.
func (p *Phone) Invite() (url string) {
	x := &pairing{code: rand.Text(), used: time.Now(), ended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pairing != nil {
		p.pairing.close()
	}
	p.pairing = x
	x.timer = time.AfterFunc(pairingIdle, func() { p.expire(x) })
	return "http://" + p.host + "/?pair=" + x.code
}

func (x *pairing) close() {
	x.timer.Stop()
	close(x.ended)
}

// idle returns for how long the pairing was not used. The time that a program measures stands still while a machine
// sleeps, and the clock can be set back, so the longer one counts.
func (x *pairing) idle() time.Duration {
	now := time.Now()
	return max(now.Sub(x.used), now.Round(0).Sub(x.used.Round(0)))
}

func (x *pairing) isIdle() bool { return x.idle() >= pairingIdle }

// over ends a pairing if it is the present one; nil: whichever it is. It reports whether it has.
func (p *Phone) over(x *pairing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pairing == nil || x != nil && p.pairing != x {
		return false
	}
	p.pairing.close()
	p.pairing = nil
	return true
}

// expire ends a pairing that is idle, and looks again later at one that is not.
func (p *Phone) expire(x *pairing) {
	p.mu.Lock()
	isIdle := x.isIdle()
	if !isIdle {
		x.timer.Reset(pairingIdle - x.idle())
	}
	p.mu.Unlock()
	if isIdle && p.over(x) {
		p.tell(PhoneIdle)
	}
}

// Replies to devices that are refused.
const (
	toldCode   = "this code is not the one on the terminal; nothing is opened"
	toldUsed   = "this code was used before, and pairs one device only; a new one is made on the terminal"
	toldNone   = "no code is valid now; a new one is made on the terminal"
	toldCookie = "this device is not paired, or its pairing has ended; a new code is made on the terminal"
)

// handler answers the devices of the network. As in Server.guard, nothing is read before all is checked.
func (p *Phone) handler() http.Handler {
	m := http.NewServeMux()
	for _, r := range p.server.routes() {
		if r.phone != nil {
			m.HandleFunc(r.pattern, r.phone)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if r.Host != p.host {
			refuse(w, http.StatusForbidden, "this server answers only to the address that muster web has printed")
			return
		}
		if status, why := checkSource(r, nil); why != "" {
			refuse(w, status, why)
			return
		}
		ended, ok := p.admit(r)
		if r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has("pair") {
			if ok { // it is read from the terminal again, to come back to the page
				http.Redirect(w, r, "/", http.StatusSeeOther)
			} else {
				p.pair(w, r)
			}
			return
		}
		if !ok {
			refuse(w, http.StatusUnauthorized, toldCookie)
			return
		}
		if _, pattern := m.Handler(r); pattern == "" {
			refuse(w, http.StatusForbidden, "a phone reads and answers, and does nothing else")
			return
		}
		// What is sent to the device ends with the pairing.
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-ended:
				cancel()
			case <-ctx.Done():
			}
		}()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		m.ServeHTTP(w, r)
	})
}

// cookie is the name of the device's cookie: browsers send cookies to all ports of a machine.
func (p *Phone) cookie() string {
	_, port, _ := net.SplitHostPort(p.host) // it is the address of a listener
	return "muster-" + port
}

// admit reports whether a request is of the paired device, and notes the use. ended is closed when its pairing ends.
func (p *Phone) admit(r *http.Request) (ended <-chan struct{}, ok bool) {
	c, err := r.Cookie(p.cookie())
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.pairing
	if err != nil || x == nil || x.secret == "" || x.isIdle() || !same(c.Value, x.secret) {
		return nil, false
	}
	x.used = time.Now()
	return x.ended, true
}

// pair makes the device that sends the code the paired one.
func (p *Phone) pair(w http.ResponseWriter, r *http.Request) {
	secret, why, happened := p.take(r.URL.Query().Get("pair"))
	if happened != nil {
		p.tell(*happened)
	}
	if why != "" {
		refuse(w, http.StatusForbidden, why)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: p.cookie(), Value: secret, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// take uses a code. It returns the secret of the device that has sent it, or why it gets none, and what has happened to
// the pairing. Looking and using are one step, so that of two who send the code at once one gets in.
func (p *Phone) take(code string) (secret, why string, happened *PhoneEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.pairing
	switch {
	case x == nil || x.isIdle():
		return "", toldNone, nil
	case x.secret != "": // there is nothing left to guess
		if same(code, x.code) {
			return "", toldUsed, nil
		}
		return "", toldCode, nil
	case !same(code, x.code):
		if x.wrong++; x.wrong < mostWrong {
			return "", toldCode, nil
		}
		x.close()
		p.pairing = nil
		return "", toldCode, new(PhoneClosed)
	}
	x.secret, x.used = random(), time.Now()
	return x.secret, "", new(PhonePaired)
}

// fromPhone answers a paired phone where it may do less than the page on this machine.
type fromPhone struct{ *Server }

func (p fromPhone) state(r *http.Request) (any, error) { return onPhone(p.Server.state(r)) }
func (p fromPhone) past(r *http.Request) (any, error)  { return onPhone(p.Server.past(r)) }

// onPhone says in a state that a phone gets it: the page offers nothing that would be refused.
func onPhone(v any, err error) (any, error) {
	switch s := v.(type) {
	case state:
		s.IsPhone, s.Can = true, can{}
		return s, err
	case pastState:
		s.IsPhone = true
		return s, err
	case nil:
		return nil, err
	}
	return nil, fmt.Errorf("a state is a %T", v)
}

// decide answers a request, for this one time: what is allowed for longer is allowed on the machine itself.
func (p fromPhone) decide(r *http.Request) (any, error) {
	var in answerSent
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.Scope != muster.ScopeOnce {
		return nil, refusal("a phone approves for one time only")
	}
	return p.decideSent(r.Context(), in)
}

// mail sends mail to the lead.
func (p fromPhone) mail(r *http.Request) (any, error) {
	var in mailSent
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.To != muster.Lead {
		return nil, refusal("a phone writes to the lead only")
	}
	return p.sendMail(r.Context(), in)
}
