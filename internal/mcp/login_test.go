package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/testing/oauthtest"
	"muster/internal/testing/require"
)

// guardedPool returns a pool with the server, as a new process has one.
func guardedPool(t *testing.T, g *oauthtest.Server, cache string) *Pool {
	p := New(t.Context(), Options{Cache: cache, Dir: t.TempDir()}, []Server{{Name: "guarded", URL: g.URL}})
	t.Cleanup(p.Close)
	return p
}

// lists fails the test if the tools of the server cannot be listed.
func lists(t *testing.T, g *oauthtest.Server, cache string) {
	t.Helper()
	tools, err := guardedPool(t, g, cache).List(t.Context(), "guarded")
	if err != nil || len(tools) != 1 || tools[0].Name != "mcp__guarded__secret" {
		t.Errorf("%v, %v", tools, err)
	}
}

// TestLogin: a server that wants a login says so, the user logs in once, and every later connection uses that, renewed
// when it has run out, until the user logs out. Nobody else can read it.
func TestLogin(t *testing.T) {
	g, cache := oauthtest.New(t), t.TempDir()
	if _, err := guardedPool(t, g, cache).List(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "muster mcp login") {
		t.Fatalf("without a login: %v", err)
	}
	require.NoError(t, guardedPool(t, g, cache).Login(t.Context(), "guarded", oauthtest.Browse))
	lists(t, g, cache)
	files, _ := filepath.Glob(filepath.Join(cache, "logins", "*.json"))
	if len(files) != 1 {
		t.Fatalf("stored are %v", files)
	}
	if fi, err := os.Stat(files[0]); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}

	if got := LoginSecrets(Server{Name: "guarded", URL: g.URL}, cache); !slices.Equal(got, []string{"access-1", "refresh-1"}) {
		t.Errorf("secrets are %q", got)
	}
	if got := LoginSecrets(Server{Name: "guarded", URL: g.URL + "/other"}, cache); len(got) > 0 {
		t.Errorf("of another server: %q", got)
	}

	// One that has run out is renewed by the first of many that need it.
	expire(t, files[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { lists(t, g, cache) })
	}
	all.Wait()
	if n := g.Granted(); n != 2 {
		t.Errorf("%d tokens were granted, not 2", n)
	}

	// One that cannot be renewed any more ends in words that say what to do.
	expire(t, files[0])
	g.EndRenewals()
	if _, err := guardedPool(t, g, cache).List(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "login") {
		t.Errorf("with a login that has ended: %v", err)
	}
	if had, err := guardedPool(t, g, cache).Logout("guarded"); !had || err != nil {
		t.Errorf("%v, %v", had, err)
	}
	if had, err := guardedPool(t, g, cache).Logout("guarded"); had || err != nil {
		t.Errorf("a second time: %v, %v", had, err)
	}
}

// expire lets a stored token run out.
func expire(t *testing.T, file string) {
	t.Helper()
	var x login
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &x)
	}
	require.NoError(t, err)
	x.Token.Expiry = time.Now().Add(-time.Hour)
	if data, err = json.Marshal(x); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	require.NoError(t, err)
}

// TestRefusedLogin: where the user says no, or never answers, nothing is stored.
func TestRefusedLogin(t *testing.T) {
	g, cache := oauthtest.New(t), t.TempDir()
	g.Refuse()
	err := guardedPool(t, g, cache).Login(t.Context(), "guarded", oauthtest.Browse)
	if err == nil || !strings.Contains(err.Error(), "says no") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := guardedPool(t, g, cache).Login(ctx, "guarded", func(string) { cancel() }); err == nil {
		t.Error("a login that nobody answers is one")
	}
	if files, _ := filepath.Glob(filepath.Join(cache, "logins", "*")); len(files) > 0 {
		t.Errorf("stored are %v", files)
	}
	if err := guardedPool(t, g, cache).Login(t.Context(), "other", oauthtest.Browse); err == nil {
		t.Error("a server that is not there")
	}
}
