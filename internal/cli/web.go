package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"muster/internal/redact"
	"muster/internal/view"
	"muster/internal/web"
)

// newWebCommand returns muster web, which shows the team in a browser until it is interrupted. It opens where there is
// no team yet too: the page says so, and shows the team once there is one.
func newWebCommand(a *App) *cobra.Command {
	var addr, phone string
	var noOpen, yes bool
	var hosts []string
	c := &cobra.Command{Use: "web [ARCHIVE]", Args: namedArgs("[ARCHIVE]"),
		Short: "the team in a browser: what needs you, the board, conversations, differences",
		Long: "It answers on this machine alone, to whoever has the address that it prints. From another machine:\n" +
			"  ssh -L 7310:127.0.0.1:7310 HOST     with  muster web --addr 127.0.0.1:7310\n" +
			"Where an editor or a dev container forwards the port to another name, --host says which.\n" +
			"With a name of muster archive list it shows how that team worked, and changes nothing.\n" +
			"--phone pairs one phone of the local network by a QR code. It reads, answers requests and writes to\n" +
			"the lead. Nothing is encrypted there: the network can listen.\n" +
			"Ctrl-C ends it; the team goes on."}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 is any that is free")
	c.Flags().StringSliceVar(&hosts, "host", nil, "answer to this `NAME` too, at which a forwarded port is reached")
	c.Flags().BoolVar(&noOpen, "no-open", false, "start no browser")
	c.Flags().StringVar(&phone, "phone", "", "let one phone of the local network in too, at `ADDRESS` of this machine")
	c.Flags().Lookup("phone").NoOptDefVal = defaultRoute
	c.Flags().BoolVar(&yes, "yes", false, "open the page to the network with --phone, and do not ask")
	c.RunE = func(c *cobra.Command, args []string) error {
		if yes && phone == "" {
			return &usageError{c.CommandPath(), "--yes answers the question of --phone"}
		}
		open, isArchive := a.open, len(args) > 0
		if isArchive {
			open = func(ctx context.Context) (opened, error) { return openArchive(ctx, a, args[0]) }
		}
		o, err := open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		var door *phoneDoor
		s := pageOf(a, o)
		if phone != "" {
			at, others, err := phoneAsked(c.Context(), a, phone, yes)
			if err != nil {
				return err
			}
			defer func() { _ = at.Close() }() // Serve has closed it, if it came to that
			door = newPhoneDoor(a, s, at, others)
		}
		// The port is taken before the address is printed: what is printed answers at once.
		l, err := web.Listen(c.Context(), addr)
		if err != nil {
			return err
		}
		s.Hosts, s.Replay = hosts, isArchive
		s.Launch, s.Merge = launcher(a), merger(o.Team)
		address := webAddress{URL: s.URL(l)}
		if door != nil {
			address.PhoneURL = door.Invite()
		}
		if err := printAddress(a, address); err != nil {
			return err
		}
		if door != nil && !a.json {
			door.show(address.PhoneURL)
		}
		fmt.Fprintln(a.Stderr, "Ctrl-C ends the page; the team goes on")
		if a.endsProcess && !noOpen && !a.json && a.screen(a.Stdout).Width > 0 {
			// A browser is started with the address as an argument, which other users and the team's tools can see.
			// So it gets one that opens the page once.
			openBrowser(c.Context(), a.env, s.TicketURL(l))
		}
		// An interruption is the way to end it, and no failure.
		serve := func(ctx context.Context) error { return s.Serve(ctx, l) }
		if door != nil {
			return door.serve(c.Context(), serve)
		}
		return serve(c.Context())
	}
	return c
}

// pageOf returns a server for the page of a team. What models and tools have said reaches the page without secrets, as
// it reaches a terminal.
func pageOf(a *App, o opened) *web.Server {
	s := web.New(o.Team)
	s.Hide, s.Now = a.secrets.Bytes, a.Now
	// Without settings that can be read, the page shows tokens and no share of a window.
	if settings, _, err := o.workspace.Settings(nil); err == nil {
		s.Window = func(model string) int { return knownModel(settings, model, a.Env).Window }
	}
	return s
}

// webAddress is what muster web prints with --json.
type webAddress struct {
	URL      string `json:"url"`
	PhoneURL string `json:"phone_url,omitempty"`
}

func printAddress(a *App, address webAddress) error {
	err := a.print(address, func(view.Screen) string { return address.URL + "\n" })
	if w, ok := a.Stdout.(*redact.Writer); ok { // what it holds back would be the end of the address
		_ = w.Flush()
	}
	return err
}

// openBrowser shows an address in the user's browser, where there is one. The address was printed before, so that
// nothing is lost where this fails. Through ssh the browser would open on the wrong machine, or in the terminal.
func openBrowser(ctx context.Context, env func(string) string, url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	default:
		if env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	if env("SSH_CONNECTION") != "" {
		return
	}
	cmd := exec.CommandContext(ctx, name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // so that no zombie is left
	}
}
