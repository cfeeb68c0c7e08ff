package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/durable"
	"muster/internal/editdist"
	"muster/internal/mcp"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
)

// mcpSection is the setting that has MCP servers, and mcpFile the file in which other agents have them.
const (
	mcpSection = "mcp_servers"
	mcpFile    = ".mcp.json"
)

// mcpServer is a server that a file defines.
type mcpServer struct {
	mcp.Server
	isTrusted bool // it is in the user's own file, or the user trusts it
	isHidden  bool // one of the same name counts
}

// item returns a server of the repository as what the user is asked to trust.
func (s mcpServer) item() trust.Item {
	return trust.Item{Name: mcpSection + "." + s.Name, File: s.File, Text: s.Text}
}

// problem says why the members do not have the server's tools; "": they have.
func (s mcpServer) problem() string {
	switch {
	case !s.isTrusted:
		return "not trusted (muster trust)"
	case s.isHidden:
		return "not used: another file has one of the same name"
	case s.Problem != "":
		return "not used: " + s.Problem
	}
	return ""
}

// findMCPServers returns the servers of the user's own file, of muster.yaml and of .mcp.json, in this order, and those
// of the repository also as items for the user to trust. Of the servers with one name the first that counts is used.
func findMCPServers(
	a *App, w *workspace.Workspace, settings config.Settings,
) (all []mcpServer, items []trust.Item, err error) {
	trusted, err := w.Trust().Get()
	if err != nil {
		return nil, nil, err
	}
	names := map[string]bool{}
	add := func(s mcpServer) {
		if !s.isTrusted && s.Text != "" {
			items = append(items, s.item())
			s.isTrusted = trusted.TrustsItem(s.item())
		}
		s.isHidden = s.isTrusted && names[s.Name]
		names[s.Name] = names[s.Name] || s.problem() == ""
		all = append(all, s)
	}
	lookup := func(name string) (string, bool) { return variable(a, name) }
	for _, section := range settings.SectionsNamed(mcpSection) {
		entries, err := section.Entries()
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			var value any
			err := section.Decode(e.Value, &value)
			data, errJSON := json.Marshal(value)
			s := mcp.Parse(e.Name, section.File, data, true, lookup)
			if err = errors.Join(err, errJSON); err != nil {
				s.Problem = muster.PlainText(err)
			}
			add(mcpServer{Server: s, isTrusted: section.IsTrusted()})
		}
	}
	data, err := durable.ReadBelow(w.Root(), filepath.Join(w.Root(), mcpFile), config.MaxSize)
	var list []mcp.Server
	if err == nil {
		list, err = mcp.ParseFile(mcpFile, data, lookup)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // mistakes in files for other agents stop nobody
		add(mcpServer{isTrusted: true,
			Server: mcp.Server{Name: mcpFile, File: mcpFile, Problem: muster.PlainText(err)}})
	}
	for _, s := range list {
		add(mcpServer{Server: s})
	}
	return all, items, nil
}

func allMCPServers(a *App, o opened) (all []mcpServer, settings config.Settings, err error) {
	if settings, _, err = o.workspace.Settings(nil); err == nil {
		all, _, err = findMCPServers(a, o.workspace, settings)
	}
	return all, settings, err
}

func variable(a *App, name string) (value string, isSet bool) {
	for _, kv := range slices.Backward(a.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// countingMCP returns the servers that count, also those with a problem, of which the run then says so.
func countingMCP(a *App, w *workspace.Workspace, s config.Settings) (list []mcp.Server, secrets []string, err error) {
	all, _, err := findMCPServers(a, w, s)
	for _, s := range all {
		if s.isTrusted && !s.isHidden {
			list = append(list, s.Server)
			secrets = slices.Concat(secrets, s.Secrets(), mcp.LoginSecrets(s.Server, mcpCache(a)))
		}
	}
	return list, secrets, err
}

// mcpCache returns where the tools of servers are remembered, "" where the user has no directory for it.
func mcpCache(a *App) string {
	dir, err := paths.UserState(a.env)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mcp")
}

// mcpFields are a server as --json prints it.
type mcpFields struct {
	Name      string `json:"name"`
	Problem   string `json:"problem,omitempty"`
	Transport string `json:"transport"`
	Tools     *int   `json:"tools,omitempty"`
	File      string `json:"file"`
}

// newMCPCommand returns muster mcp. Without a name it starts nothing.
func newMCPCommand(a *App) *cobra.Command {
	c := &cobra.Command{Use: "mcp [NAME]", Args: namedArgs("[NAME]"), Short: "the MCP servers whose tools members have",
		Long: "Servers of the Model Context Protocol stand under mcp_servers in your config.yaml and muster.yaml,\n" +
			"and in .mcp.json. Those of a repository count when you have trusted them. With NAME, the server is\n" +
			"started and asked for its tools."}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return showMCP(c.Context(), a, args[0])
		}
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		all, _, err := allMCPServers(a, o)
		if err != nil {
			return err
		}
		return listMCP(c.Context(), a, o, all)
	}
	c.AddCommand(newMCPLoginCommand(a), newMCPLogoutCommand(a))
	return c
}

// listMCP prints servers, with the number of tools that each had when it was asked last.
func listMCP(ctx context.Context, a *App, o opened, all []mcpServer) error {
	list := []mcpFields{}
	t := view.Table{Wide: 1, Titles: []string{"SERVER", "STATE", "TRANSPORT", "TOOLS", "FILE"}}
	for _, s := range all {
		f := mcpFields{Name: s.Name, Problem: s.problem(), Transport: s.Transport(), File: s.File}
		state, tools := f.Problem, "?"
		if state == "" {
			state = "counts"
			p := mcp.New(ctx, mcp.Options{Dir: o.Root(), Cache: mcpCache(a)}, []mcp.Server{s.Server})
			if n, ok := p.Remembered(s.Name); ok {
				f.Tools, tools = &n, fmt.Sprint(n)
			}
		}
		t.Row(text.OneLine(s.Name), text.OneLine(state), f.Transport, tools, text.OneLine(s.File))
		list = append(list, f)
	}
	return a.print(list, func(s view.Screen) string {
		if len(list) == 0 {
			return "No MCP servers here. They stand in .mcp.json, or under mcp_servers in your config.yaml.\n"
		}
		return t.Draw(s)
	})
}

func mcpNamed(all []mcpServer, name string) (mcp.Server, error) {
	var s *mcpServer
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
		if all[i].Name == name && (s == nil || all[i].problem() == "") {
			s = &all[i]
		}
	}
	if s == nil {
		return mcp.Server{}, muster.Errorf(muster.NotFound, "there is no MCP server %q%s", name,
			editdist.Suggest(name, names)).
			WithHint("see all:  muster mcp")
	}
	if why := s.problem(); why != "" {
		return s.Server, muster.Errorf(muster.Invalid, "the MCP server %q of %s is not started: %s", name, s.File, why)
	}
	return s.Server, nil
}

// withMCP calls do with a pool that has just the server with a name, which must count.
func withMCP(
	ctx context.Context, a *App, name string, do func(ctx context.Context, p *mcp.Pool) error,
) error {
	o, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	all, settings, err := allMCPServers(a, o)
	if err != nil {
		return err
	}
	s, err := mcpNamed(all, name)
	if err != nil {
		return err
	}
	launcher, err := proc.New(ctx)
	if err != nil {
		return err
	}
	defer launcher.Close() //nolint:errcheck // Nothing is left that it could lose.
	pool := mcp.New(ctx, mcp.Options{Launcher: launcher, Env: proc.Environment(a.Env, settings.PassEnv),
		Dir: o.Root(), Cache: mcpCache(a), Secrets: redact.New(append(secretValues(a), s.Secrets()...)...),
		Log: a.logger()}, []mcp.Server{s})
	defer pool.Close()
	if err := do(ctx, pool); err != nil {
		return muster.Errorf(muster.Unavailable, "the MCP server %q %w", name, err)
	}
	return nil
}

func showMCP(ctx context.Context, a *App, name string) error {
	return withMCP(ctx, a, name, func(ctx context.Context, p *mcp.Pool) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		tools, err := p.List(ctx, name)
		if err != nil {
			return err
		}
		t := view.Table{Wide: 1, Titles: []string{"TOOL", "WHAT IT DOES", "WRITES"}}
		for _, x := range tools {
			writes := map[bool]string{true: "no", false: "yes"}[x.ReadOnly]
			t.Row(text.OneLine(x.Name), text.OneLine(x.Description), writes)
		}
		return a.print(tools, t.Draw)
	})
}

// loginPatience is how long a login waits for the user.
const loginPatience = 10 * time.Minute

func newMCPLoginCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "login NAME", Args: namedArgs("NAME"), Short: "log in at a server that wants it",
		Long: "The page for the login is printed: open it in a browser on this machine. What the server grants is\n" +
			"stored in your state directory, renewed when it runs out, and sent to that server only.",
		RunE: func(c *cobra.Command, args []string) error {
			return withMCP(c.Context(), a, args[0], func(ctx context.Context, p *mcp.Pool) error {
				ctx, cancel := context.WithTimeout(ctx, loginPatience)
				defer cancel()
				err := p.Login(ctx, args[0], func(page string) {
					fmt.Fprintf(a.Stderr, "Open this page in a browser on this machine:\n  %s\n", text.OneLine(page))
				})
				if err != nil {
					return fmt.Errorf("did not log you in: %w", err)
				}
				return a.printLine(struct{}{}, nil, "you are logged in at %s", args[0])
			})
		}}
}

func newMCPLogoutCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "logout NAME", Args: namedArgs("NAME"), Short: "forget the login at a server",
		RunE: func(c *cobra.Command, args []string) error {
			return withMCP(c.Context(), a, args[0], func(_ context.Context, p *mcp.Pool) error {
				line := "the login at %s is forgotten"
				had, err := p.Logout(args[0])
				if !had {
					line = "you are not logged in at %s"
				}
				return a.printLine(struct{}{}, err, line, args[0])
			})
		}}
}
