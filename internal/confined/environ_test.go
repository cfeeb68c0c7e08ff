package confined

import (
	"slices"
	"testing"

	"muster/internal/proc"
	"muster/internal/sandbox"
)

// The caches are those of confined programs, and what the user's go has downloaded comes before the network.
func TestCaches(t *testing.T) {
	for _, c := range []struct {
		name, home     string
		env            []string
		modules, proxy string
	}{
		{"go's defaults", "/home/u", nil, "/c/go-mod",
			"file:///home/u/go/pkg/mod/cache/download,https://proxy.golang.org,direct"},
		{"the user's own", "/home/u", []string{"GOMODCACHE=/m", "GOPROXY=https://p.example,off"}, "/c/go-mod",
			"file:///m/cache/download,https://p.example,off"},
		{"the first of several", "/home/u", []string{"GOPATH=/a:/b"}, "/c/go-mod",
			"file:///a/pkg/mod/cache/download,https://proxy.golang.org,direct"},
		{"no home directory", "", nil, "/c/go-mod", "https://proxy.golang.org,direct"},
	} {
		env := withCaches(append(c.env, "GOCACHE=/users", "XDG_CACHE_HOME=/users", "A=b"), "/c", c.home)
		for name, want := range map[string]string{"GOMODCACHE": c.modules, "GOPROXY": c.proxy, "GOCACHE": "/c/go-build",
			"XDG_CACHE_HOME": "/c/xdg", "npm_config_cache": "/c/npm", "A": "b"} {
			if got := proc.Variable(env, name); got != want {
				t.Errorf("%s: %s is %q and not %q", c.name, name, got, want)
			}
		}
	}
}

// Nothing of the user's session is named, nor a file of git's that cannot be read, and the environment of the caller
// stays as it is.
func TestNoSession(t *testing.T) {
	env := []string{"SSH_AUTH_SOCK=/s", "PATH=/bin", "DOCKER_HOST=unix:///d", "GIT_CONFIG_SYSTEM=/s", "GIT_CONFIG_GLOBAL=/g",
		"GIT_CONFIG_NOSYSTEM=1", "SSH_AUTH_SOCKET=kept"}
	before := slices.Clone(env)
	if got := withoutSession(env); !slices.Equal(got, []string{"PATH=/bin", "GIT_CONFIG_NOSYSTEM=1", "SSH_AUTH_SOCKET=kept"}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(env, before) {
		t.Errorf("the caller's is %q now", env)
	}
}

// A program has a home directory of its own where it cannot be shown an empty one.
func TestWithHome(t *testing.T) {
	for _, c := range []struct {
		hasNamespaces bool
		home, want    string
	}{{true, "/home/u", "/home/u"}, {false, "/home/u", "/t/home"}, {true, "/", "/t/home"}, {false, "", ""}} {
		s := withHome(proc.Spec{Argv: []string{"true"}, Env: []string{"TMPDIR=/t", "HOME=" + c.home}}, &sandbox.Method{HasNamespaces: c.hasNamespaces}, c.home, nil)
		if got := proc.Variable(s.Env, "HOME"); got != c.want || (len(s.Argv) > 1) != (c.want == "/t/home") {
			t.Errorf("%+v: %q, %q", c, got, s.Argv)
		}
	}
}

// Downloads can be read wherever they lie. Nothing is shared where there is no directory for it.
func TestModuleRules(t *testing.T) {
	r := modules([]string{"GOMODCACHE=/m"}, "/home/u", "/c")
	if len(r) != 2 || r[0].Path != "/m/cache/download" || r[1].From != "/m/cache/download/sumdb" ||
		r[1].Path != "/c/go-mod/cache/download/sumdb" {
		t.Errorf("%+v", r)
	}
	for _, env := range [][]string{{"GOMODCACHE=relative"}, {"GOPATH=relative"}} {
		if r := modules(env, "/home/u", "/c"); len(r) > 0 {
			t.Errorf("%q: %+v", env, r)
		}
	}
	if r := modules(nil, "/home/u", ""); len(r) > 0 {
		t.Errorf("without caches: %+v", r)
	}
}
