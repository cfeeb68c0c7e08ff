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
func checkServer(a *App, w *workspace.Workspace, name string, s config.Settings) error {
	server := serverOf(a, name)
	named := append(s.OwnModels(), s.UserModel) // a repository may name no server for a role
	if server == "" || slices.ContainsFunc(named, func(m string) bool { return serverOf(a, m) == server }) {
		return nil
	}
	known, err := w.Trust().Get()
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
func rememberServer(ctx context.Context, a *App, w *workspace.Workspace, s config.Settings) {
	if server := serverOf(a, s.Model); server != "" && server == serverOf(a, s.UserModel) {
		if err := addServer(ctx, w, server); err != nil {
			a.logger().Warn("the model's server was not noted", "cause", err)
		}
	}
}

// nameModel checks the name of a model that the user gives to a member, and notes its server before any record has the
// name. Inside of a team's own tools it is refused, because what an agent names is not what the user names.
func nameModel(ctx context.Context, a *App, o opened, name string) error {
	if name == "" {
		return nil
	}
	if err := config.ReadEndpoints(a.configOptions("")).CheckModel(name); err != nil {
		return err
	}
	server := serverOf(a, name)
	if server == "" {
		return nil
	}
	if strings.HasSuffix(server, "?") {
		return muster.Errorf(muster.Invalid, "the endpoint of a member's model has no query: no record holds one")
	}
	return addServer(ctx, o.workspace, server)
}

func addServer(ctx context.Context, w *workspace.Workspace, server string) error {
	known, err := w.Trust().Get()
	if err != nil || slices.Contains(known.Servers, server) {
		return err
	}
	return w.Trust().Change(ctx, func(t *trust.Settings) { t.AddServer(server) })
}

// serverOf returns what in a model's name only the user may choose, and "" when there is nothing of the kind or the
// name is none.
func serverOf(a *App, name string) string {
	c, err := config.ParseModel(name)
	if err != nil {
		return "" // nothing can be made of it
	}
	if c.Provider == config.Script {
		c.Name = scriptFile(a, c.Name)
	}
	return c.Server()
}

// scriptFile returns the path of a script, which is relative to the directory of -C.
func scriptFile(a *App, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.workDir(), name)
}
