package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// grants is a server that grants logins, with an MCP server behind it that wants them. It checks each step as the
// protocol asks for it.
type grants struct {
	t   *testing.T
	web *httptest.Server

	mu        sync.Mutex
	challenge string // of the code that was granted
	redirect  string
	refresh   string // the permission to renew that was granted last
	tokens    int    // that were granted
	lives     int    // seconds of a token
	refuses   bool   // the user says no
}

// newGrants starts the servers.
func newGrants(t *testing.T) *grants {
	g := &grants{t: t, lives: 3600}
	server := sdk.NewServer(&sdk.Implementation{Name: "guarded", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "secret", Description: "Tells a secret."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the secret"}}}, nil, nil
		})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		now := fmt.Sprint("Bearer access-", g.tokens)
		g.mu.Unlock()
		if r.Header.Get("Authorization") != now {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.web.URL+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": g.web.URL + "/mcp", "authorization_servers": []string{g.web.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": g.web.URL, "authorization_endpoint": g.web.URL + "/authorize",
			"token_endpoint": g.web.URL + "/token", "registration_endpoint": g.web.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var c map[string]any
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c["client_name"] != "muster" {
			t.Errorf("registered as %v, %v", c, err)
		}
		c["client_id"] = "client"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(c)
	})
	mux.HandleFunc("/authorize", g.authorize)
	mux.HandleFunc("/token", g.token)
	g.web = httptest.NewServer(mux)
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		g.web.Close()
	})
	return g
}

// authorize is the page that the user opens. It leads back to the program at once.
func (g *grants) authorize(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	g.challenge, g.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
	back := url.Values{"state": {q.Get("state")}, "code": {"code-1"}}
	if g.refuses {
		back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"}, "error_description": {"the user\x1b[31m says no"}}
	}
	if q.Get("client_id") != "client" || q.Get("code_challenge_method") != "S256" || q.Get("resource") != g.web.URL+"/mcp" ||
		!strings.HasPrefix(g.redirect, "http://127.0.0.1:") {
		g.t.Errorf("the page is asked for with %v", q)
	}
	http.Redirect(w, r, g.redirect+"?"+back.Encode(), http.StatusFound)
}

// token grants tokens.
func (g *grants) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	isCode := r.FormValue("grant_type") == "authorization_code" && r.FormValue("code") == "code-1" &&
		r.FormValue("redirect_uri") == g.redirect && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge
	isRenewal := r.FormValue("grant_type") == "refresh_token" && g.refresh != "" && r.FormValue("refresh_token") == g.refresh
	w.Header().Set("Content-Type", "application/json")
	if r.FormValue("client_id") != "client" || !isCode && !isRenewal {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	g.tokens++
	g.refresh = fmt.Sprint("refresh-", g.tokens)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("access-", g.tokens), "token_type": "Bearer",
		"expires_in": g.lives, "refresh_token": g.refresh})
}

// pool returns a pool with the server, as a new process has one.
func (g *grants) pool(cache string) *Pool {
	p := New(g.t.Context(), Options{Cache: cache, Dir: g.t.TempDir()}, []Server{{Name: "guarded", URL: g.web.URL + "/mcp"}})
	g.t.Cleanup(p.Close)
	return p
}

// browse opens a page as a browser does.
func (g *grants) browse(page string) {
	answer, err := http.Get(page)
	if err != nil {
		g.t.Error(err)
		return
	}
	_ = answer.Body.Close()
}

// lists fails the test if the tools of the server cannot be listed.
func (g *grants) lists(cache string) {
	g.t.Helper()
	tools, err := g.pool(cache).List(g.t.Context(), "guarded")
	if err != nil || len(tools) != 1 || tools[0].Name != "mcp__guarded__secret" {
		g.t.Fatalf("%v, %v", tools, err)
	}
}

// TestLogin: a server that wants a login says so, the user logs in once, and every later connection uses that, renewed
// when it has run out, until the user logs out. Nobody else can read it.
func TestLogin(t *testing.T) {
	g, cache := newGrants(t), t.TempDir()
	if _, err := g.pool(cache).List(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "muster mcp login") {
		t.Fatalf("without a login: %v", err)
	}
	if err := g.pool(cache).Login(t.Context(), "guarded", g.browse); err != nil {
		t.Fatal(err)
	}
	g.lists(cache)
	files, _ := filepath.Glob(filepath.Join(cache, "logins", "*.json"))
	if len(files) != 1 {
		t.Fatalf("stored are %v", files)
	}
	if fi, err := os.Stat(files[0]); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}

	if got := LoginSecrets(Server{Name: "guarded", URL: g.web.URL + "/mcp"}, cache); !slices.Equal(got, []string{"access-1", "refresh-1"}) {
		t.Errorf("secrets are %q", got)
	}
	if got := LoginSecrets(Server{Name: "guarded", URL: g.web.URL + "/other"}, cache); len(got) > 0 {
		t.Errorf("of another server: %q", got)
	}

	// One that has run out is renewed by the first of many that need it.
	expire(t, files[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { g.lists(cache) })
	}
	all.Wait()
	if g.tokens != 2 {
		t.Errorf("%d tokens were granted, not 2", g.tokens)
	}

	// One that cannot be renewed any more ends in words that say what to do.
	expire(t, files[0])
	g.refresh = "another"
	if _, err := g.pool(cache).List(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "login") {
		t.Errorf("with a login that has ended: %v", err)
	}
	if had, err := g.pool(cache).Logout("guarded"); !had || err != nil {
		t.Errorf("%v, %v", had, err)
	}
	if had, err := g.pool(cache).Logout("guarded"); had || err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	x.Token.Expiry = time.Now().Add(-time.Hour)
	if data, err = json.Marshal(x); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusedLogin: where the user says no, or never answers, nothing is stored.
func TestRefusedLogin(t *testing.T) {
	g, cache := newGrants(t), t.TempDir()
	g.refuses = true
	err := g.pool(cache).Login(t.Context(), "guarded", g.browse)
	if err == nil || !strings.Contains(err.Error(), "says no") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := g.pool(cache).Login(ctx, "guarded", func(string) { cancel() }); err == nil {
		t.Error("a login that nobody answers is one")
	}
	if files, _ := filepath.Glob(filepath.Join(cache, "logins", "*")); len(files) > 0 {
		t.Errorf("stored are %v", files)
	}
	if err := g.pool(cache).Login(t.Context(), "other", g.browse); err == nil {
		t.Error("a server that is not there")
	}
}
