package confined

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/toolchains"
	"muster/internal/toolsettings"
)

// sessionVariables name services of the user's session: agents with keys, the desktop, a Docker daemon; and files of
// git, which fails at one that is there and cannot be read.
var sessionVariables = []string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_TTY", "DISPLAY",
	"WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}

// withoutSession returns an environment without sessionVariables, because nothing of theirs can be reached. The name of
// no file stays: it keeps git from the user's.
func withoutSession(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return slices.Contains(sessionVariables, name) && value != os.DevNull
	})
}

// withHome returns a program that cannot be shown an empty directory in the place of the user's home directory, such as
// the / of a container, with one of its own beside its temporary files, which has what the rules show of the user's.
// Programs fail at settings that are there and cannot be read.
func withHome(s proc.Spec, m *sandbox.Method, home string, r sandbox.Rules) proc.Spec {
	dir := proc.Variable(s.Env, "TMPDIR")
	if m.HasNamespaces && home != "/" || home == "" || !filepath.IsAbs(dir) {
		return s
	}
	own := filepath.Join(dir, "home")
	set := []string{"HOME=" + own}
	for _, kv := range s.Env {
		name, path, _ := strings.Cut(kv, "=")
		rest, isIn := strings.CutPrefix(path, home+"/")
		if isIn && (name == "XDG_CONFIG_HOME" || name == "XDG_DATA_HOME" || name == "XDG_STATE_HOME") {
			set = append(set, name+"="+filepath.Join(own, rest))
		}
		for _, x := range r {
			if x.From != "" && x.Path == path {
				set = append(set, name+"="+x.From)
			}
		}
	}
	s.Env = proc.WithVariables(s.Env, set...)
	if durable.IsMissing(own) {
		s.Argv = toolchains.WithHome(s.Argv, home, r)
	}
	return s
}

const xdgCache = "xdg" // the directory for the caches of all other programs

// withCaches returns the environment of a member's command, whose caches are below a directory.
func withCaches(env []string, dir, home string) []string {
	at := func(name string) string { return filepath.Join(dir, name) }
	return withModules(proc.WithVariables(env, "XDG_CACHE_HOME="+at(xdgCache), "GOCACHE="+at("go-build"),
		"npm_config_cache="+at("npm"), "PIP_CACHE_DIR="+at("pip"), "UV_CACHE_DIR="+at("uv"),
		"YARN_CACHE_FOLDER="+at("yarn")), dir, home)
}

// The modules of Go are unpacked into a directory that a confined program cannot share with the user, who builds what
// lies there. What the user has downloaded already is taken from there all the same: the directory of downloads can be
// read as a proxy, and go compares each module with the sums of the repository.

// withModules returns an environment in which go unpacks modules below a directory.
func withModules(env []string, dir, home string) []string {
	proxies := cmp.Or(toolsettings.GoVariable(home, env, "GOPROXY"), "https://proxy.golang.org,direct")
	if users := moduleCache(env, home); users != "" {
		proxies = "file://" + filepath.ToSlash(filepath.Join(users, "cache", "download")) + "," + proxies
	}
	return proc.WithVariables(env, "GOMODCACHE="+filepath.Join(dir, "go-mod"), "GOPROXY="+proxies)
}

// moduleCache returns where the user's go unpacks modules; "" where that is not known.
func moduleCache(env []string, home string) string {
	gopath, _, _ := strings.Cut(toolsettings.GoVariable(home, env, "GOPATH"), string(filepath.ListSeparator))
	if gopath == "" && home != "" {
		gopath = filepath.Join(home, "go")
	}
	if dir := toolsettings.GoVariable(home, env, "GOMODCACHE"); dir != "" || gopath == "" {
		return dir
	}
	return filepath.Join(gopath, "pkg", "mod")
}

// modules returns the rules that let the user's downloads of modules be read, wherever they are. cache is where
// withModules has led go: the sums that go has looked up before are seen there too, because it asks the network else.
func modules(env []string, home, cache string) sandbox.Rules {
	dir := moduleCache(env, home)
	if !filepath.IsAbs(dir) || cache == "" {
		return nil
	}
	downloads := filepath.Join(dir, "cache", "download")
	return sandbox.Rules{{Path: downloads}, {From: filepath.Join(downloads, "sumdb"),
		Path: filepath.Join(cache, "go-mod", "cache", "download", "sumdb")}}
}
