// Package oauthtest has a stand-in for servers that want a login by OAuth: one that grants logins, and an MCP server.
package oauthtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server grants logins, and has an MCP server behind it that wants them, with one tool, secret. It checks each step as
// the protocol asks for it.
type Server struct {
	// URL is that of the MCP server.
	URL string

	t   testing.TB
	web *httptest.Server

	mu        sync.Mutex
	challenge string // of the code that was granted
	redirect  string
	refresh   string // the permission to renew that was granted last
	tokens    int    // that were granted
	refuses   bool   // the user says no
}

// New starts the servers, which end with the test.
func New(t testing.TB) *Server {
	g := &Server{t: t}
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
			w.Header().Set("WWW-Authenticate",
				`Bearer resource_metadata="`+g.web.URL+`/.well-known/oauth-protected-resource"`)
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
	// Whoever answers a request reads it, so it is set before the server starts.
	g.web = httptest.NewUnstartedServer(mux)
	g.web.Start()
	g.URL = g.web.URL + "/mcp"
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		g.web.Close()
	})
	return g
}

// authorize is the page that the user opens. It leads back to the program at once.
func (g *Server) authorize(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	g.challenge, g.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
	back := url.Values{"state": {q.Get("state")}, "code": {"code-1"}}
	if g.refuses {
		back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"},
			"error_description": {"the user\x1b[31m says no"}}
	}
	if q.Get("client_id") != "client" || q.Get("code_challenge_method") != "S256" ||
		q.Get("resource") != g.URL ||
		!strings.HasPrefix(g.redirect, "http://127.0.0.1:") {
		g.t.Errorf("the page is asked for with %v", q)
	}
	http.Redirect(w, r, g.redirect+"?"+back.Encode(), http.StatusFound)
}

// token grants tokens.
func (g *Server) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	isCode := r.FormValue("grant_type") == "authorization_code" && r.FormValue("code") == "code-1" &&
		r.FormValue("redirect_uri") == g.redirect && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge
	isRenewal := r.FormValue("grant_type") == "refresh_token" && g.refresh != "" &&
		r.FormValue("refresh_token") == g.refresh
	w.Header().Set("Content-Type", "application/json")
	if r.FormValue("client_id") != "client" || !isCode && !isRenewal {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	g.tokens++
	g.refresh = fmt.Sprint("refresh-", g.tokens)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("access-", g.tokens),
		"token_type": "Bearer",
		"expires_in": 3600, "refresh_token": g.refresh})
}

// Browse opens a page as a browser does.
func Browse(page string) {
	if answer, err := http.Get(page); err == nil { // without an answer the login does not end
		_ = answer.Body.Close()
	}
}

// Granted returns how many tokens were granted.
func (g *Server) Granted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tokens
}

// EndRenewals makes the server renew no token that it has granted so far.
func (g *Server) EndRenewals() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refresh = ""
}

// Refuse makes the user say no on the page for the login.
func (g *Server) Refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses = true
}
