package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/config"
	"muster/internal/trust"
	"muster/internal/workspace"
)

// The server that a model's name chooses gets the user's key and code, and a script says what members do. So both come
// from the user: from a flag, the environment or the user's own file. Records of members and of the run may only repeat
// what the user has named in this repository before.

// checkServer refuses the name of a model with a server or a script that the user has not named. s has what the user
// names now.
func (a *App) checkServer(w *workspace.Workspace, name string, s config.Settings) error {
	server := a.server(name)
	if server == "" || server == a.server(s.UserModel) {
		return nil
	}
	known, err := w.Trusted()
	if err != nil || slices.Contains(known.Servers, server) {
		return err
	}
	// A query may hold a key and is therefore stored nowhere, so what follows the question mark is not known any more.
	if slices.Contains(known.Servers, server+"?") {
		return muster.Errorf(muster.Invalid, "the endpoint of the model %s had a query, which is not stored",
			config.Stored(name)).WithHint("name the model again, with the query: --model MODEL")
	}
	return muster.Errorf(muster.Invalid, "a record in this repository names the model %s, and you have not named its "+
		"server or script here yourself", config.Stored(name)).
		WithHint("if you want it: --model MODEL, or model: in your own config.yaml")
}

// rememberServer notes the server or the script that the user has named for this run, so that the run can go on with
// it later. What cannot be noted is asked for then.
func (a *App) rememberServer(ctx context.Context, w *workspace.Workspace, s config.Settings) {
	if server := a.server(s.Model); server != "" && server == a.server(s.UserModel) {
		if err := addServer(ctx, w, server); err != nil {
			a.logger().Warn("the model's server was not noted", "cause", err)
		}
	}
}

// nameModel checks the name of a model that the user gives to a member, and notes its server before any record has the
// name. Inside of a team's own tools it is refused, because what an agent names is not what the user names.
func (a *App) nameModel(ctx context.Context, o opened, name string) error {
	if name == "" {
		return nil
	}
	if _, err := config.ParseModel(name); err != nil {
		return err
	}
	server := a.server(name)
	if server == "" {
		return nil
	}
	if strings.HasSuffix(server, "?") {
		return muster.Errorf(muster.Invalid, "the endpoint of a member's model has no query, because no record holds one")
	}
	return addServer(ctx, o.workspace, server)
}

// addServer notes that the user has named a server or a script for a repository.
func addServer(ctx context.Context, w *workspace.Workspace, server string) error {
	known, err := w.Trusted()
	if err != nil || slices.Contains(known.Servers, server) {
		return err
	}
	return w.ChangeTrusted(ctx, func(t *trust.Settings) { t.AddServer(server) })
}

// server returns what in a model's name only the user may choose, and "" when there is nothing of the kind or the name
// is none.
func (a *App) server(name string) string {
	c, err := config.ParseModel(name)
	if err != nil {
		return "" // nothing can be made of it
	}
	if c.Provider == config.Script {
		c.Name = a.scriptFile(c.Name)
	}
	return c.Server()
}

// scriptFile returns the path of a script, which is relative to the directory of -C.
func (a *App) scriptFile(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.workDir(), name)
}
