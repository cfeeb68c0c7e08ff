package cli

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"

	"muster/internal/terminal"
	"muster/internal/view"
	"muster/internal/web"
)

// defaultRoute is the value of --phone without an address.
const defaultRoute = "default"

// phoneAsked asks whether to open the page to the local network, and listens there. others are further addresses of
// this machine.
func phoneAsked(ctx context.Context, a *App, asked string, yes bool) (l net.Listener, others []netip.Addr, err error) {
	const unasked = "muster web --phone --yes"
	if !yes && a.terminalIn() == nil { // what is wrong here is not the network
		return nil, nil, confirm(ctx, a, "open the page to the local network", unasked)
	}
	if asked == defaultRoute {
		asked = ""
	}
	addr, others, err := web.PhoneAddress(ctx, asked)
	if err != nil {
		return nil, nil, err
	}
	if !yes {
		warning := fmt.Sprintf("Nothing is encrypted between a phone and %s, so everybody on this network can read "+
			"what is sent, and can answer in the place of the phone. A paired phone reads all of this team, approves "+
			"and rejects requests, and writes to the lead; it starts nothing.", addr)
		if width := a.screen(a.Stderr).Width; width > 0 {
			warning = view.Hang(warning, 0, width-1)
		}
		fmt.Fprintf(a.Stderr, "%s\n\n", warning)
		if err := confirm(ctx, a, "open the page to this network", unasked); err != nil {
			return nil, nil, err
		}
	}
	l, err = web.ListenPhone(ctx, addr)
	return l, others, err
}

// phoneDoor is the entrance for a phone, and what the terminal says of it.
type phoneDoor struct {
	*App
	*web.Phone
	others []netip.Addr
}

func newPhoneDoor(a *App, s *web.Server, l net.Listener, others []netip.Addr) *phoneDoor {
	d := &phoneDoor{App: a, others: others}
	d.Phone = web.NewPhone(s, l, d.happened)
	return d
}

// invite shows an address with a new code.
func (d *phoneDoor) invite() { d.show(d.Invite()) }

// show shows an address as a QR code, where the terminal can, and as text.
func (d *phoneDoor) show(url string) {
	s := d.screen(d.Stderr)
	s.Width-- // a terminal may break a line that is full
	code, _ := s.QR(url)
	for _, o := range d.others {
		url += fmt.Sprintf("\nanother network: muster web --phone=%s", o)
	}
	// One write, so that nothing comes between the lines of the code.
	fmt.Fprint(d.Stderr, "\n"+code+url+"\n"+
		"for one phone on this network, where others can listen; it reads and answers, and starts nothing\n"+
		"the code is good for one device, and ends after 15 minutes without use, as a pairing does\n")
}

// happened says on the terminal what has happened to a pairing.
func (d *phoneDoor) happened(e web.PhoneEvent) {
	again := "a new code: muster web --phone"
	if d.terminalIn() != nil {
		again = "Enter makes a new code"
	}
	switch e {
	case web.PhonePaired:
		explain(d.Stderr, "a phone is paired, and the code is void", again+", and ends this pairing")
	case web.PhoneIdle:
		explain(d.Stderr, "the pairing has ended: 15 minutes without use", again)
	case web.PhoneClosed:
		explain(d.Stderr, "the pairing is closed: five wrong codes came from the network", again)
	}
}

// serve answers the page on this machine and the phone until ctx ends. Enter at the terminal makes a new code.
func (d *phoneDoor) serve(ctx context.Context, page func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if f := d.terminalIn(); f != nil && terminal.IsForeground(f) {
		// It ends with the process: nothing else can end a read from a terminal.
		go func() {
			for lines := bufio.NewScanner(f); lines.Scan() && ctx.Err() == nil; {
				d.invite()
			}
		}()
	}
	phone := make(chan error, 1)
	go func() {
		err := d.Serve(ctx)
		if err != nil {
			cancel(err)
		}
		phone <- err
	}()
	err := page(ctx)
	cancel(nil)
	if errPhone := <-phone; err == nil {
		err = errPhone
	}
	return err
}
