package cli

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/config"
	"muster/internal/hiddenpaths"
	"muster/internal/sandbox"
	"muster/internal/text"
	"muster/internal/toolchains"
	"muster/internal/toolsettings"
	"muster/internal/workspace"
)

// checkHidden says which directories of PATH and which toolchains commands do not see, and which of the user's settings
// of tools they do.
func checkHidden(a *App, root string, found *workspace.Findings) {
	settings, _, err := config.Load(a.configOptions(root))
	if err != nil || !settings.Sandbox.On {
		return
	}
	home := a.env("HOME")
	rules := slices.Concat(sandbox.System(), toolchains.Rules(a.Env, home, userDir(a), cacheDir(a)),
		sandbox.Read.Rules(config.InHome(home, settings.Sandbox.Read)...),
		sandbox.Write.Rules(config.InHome(home, settings.Sandbox.Write)...))
	hidden := hiddenpaths.Find(a.Env, home, rules, []string{root}, nil)
	add := func(what, dir string) {
		found.Add("sandbox", workspace.Note, "commands do not see "+what,
			fmt.Sprintf("to show it, in your own config.yaml: sandbox: {read: %q}", dir))
	}
	for _, dir := range hidden.Programs {
		add(dir+", which is in PATH", dir)
	}
	for _, kv := range hidden.Variables {
		_, dir, _ := strings.Cut(kv, "=")
		add(kv, dir)
	}
	var whole, partly []string
	for _, f := range toolsettings.Find(home, a.Env) {
		if f.IsPart {
			partly = append(partly, f.Path)
		} else {
			whole = append(whole, f.Path)
		}
	}
	if len(whole) > 0 {
		found.Add("sandbox", workspace.Healthy, "commands see your settings of tools: "+text.List(whole, 20), "")
	}
	for _, path := range partly {
		found.Add("sandbox", workspace.Note, "commands see "+path+" without what may be a credential",
			fmt.Sprintf("to show all of it, in your own config.yaml: sandbox: {read: %q}", path))
	}
}
