package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"muster/internal/durable"
	"muster/internal/proxies"
)

// This file logs the user in at servers over HTTP that want it, by OAuth with a code, as the protocol says:
// https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization. Login asks the user, and stores what
// the server has granted in a file that only the user can read. Every other connection uses that, and asks nobody.

// oauthTimeout is how long a request to a server that grants logins may take, and maxLogin how large a stored one is.
const (
	oauthTimeout = 30 * time.Second
	maxLogin     = 64 << 10
)

// login is a login as it is stored, with what is needed to renew it.
type login struct {
	URL          string           `json:"url"` // of the server that the tokens are for, and go to
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style"`
	Token        *oauth2.Token    `json:"token"`
}

// storedLogin is the stored login of one server. It is what the SDK asks for tokens.
type storedLogin struct {
	path   string // of the file; "": none can be stored
	server Server
	client *http.Client

	mu   sync.Mutex
	last login
}

// loginOf returns the stored login of a server, in a directory.
func loginOf(s Server, dir string) *storedLogin {
	l := &storedLogin{server: s, client: oauthClient()}
	if dir != "" {
		sum := sha256.Sum256([]byte(s.URL))
		l.path = filepath.Join(dir, "logins", hex.EncodeToString(sum[:16])+".json")
	}
	return l
}

// oauthClient returns the client for servers that grant logins: a server of the repository has named them.
func oauthClient() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = proxies.Last(base.Proxy)
	return &http.Client{Timeout: oauthTimeout, Transport: shortAnswers{base}}
}

// shortAnswers bounds the answers to requests.
type shortAnswers struct{ base http.RoundTripper }

// RoundTrip sends a request.
func (s shortAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.base.RoundTrip(r)
	if err == nil {
		answer.Body = &limitedBody{answer.Body, 1 << 20}
	}
	return answer, err
}

// read reads the file. A login that is not there, or cannot be read, is none.
func (l *storedLogin) read() (x login) {
	if l.path == "" {
		return x
	}
	data, err := durable.ReadRegular(l.path, maxLogin)
	if err != nil || json.Unmarshal(data, &x) != nil || x.URL != l.server.URL || x.Token == nil {
		return login{}
	}
	return x
}

// save writes the file.
func (l *storedLogin) save(x login) error {
	data, err := json.Marshal(x)
	if err == nil && l.path == "" {
		err = errors.New("there is no directory for logins")
	}
	if err == nil {
		err = durable.New(durable.OS{}).Replace(l.path, data)
	}
	return err
}

// TokenSource returns what gives the tokens of requests, nil where there is no login.
func (l *storedLogin) TokenSource(context.Context) (oauth2.TokenSource, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Token == nil {
		l.last = l.read()
	}
	if l.last.Token == nil {
		return nil, nil
	}
	return l, nil
}

// errLogin says that a server wants a login, and that there is none, or that it has ended.
var errLogin = errors.New("it wants a login")

// Authorize is called when the server refuses a request. Only Login asks the user.
func (l *storedLogin) Authorize(_ context.Context, _ *http.Request, answer *http.Response) error {
	_ = answer.Body.Close()
	return errLogin
}

// Token returns a token that is valid. One that has run out is renewed by one process at a time: servers take each
// permission to renew only once.
func (l *storedLogin) Token() (*oauth2.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.Token.Valid() {
		return l.last.Token, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*oauthTimeout)
	defer cancel()
	unlock, err := durable.New(durable.OS{}).Lock(ctx, l.path+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if x := l.read(); x.Token != nil {
		l.last = x
	}
	if l.last.Token.Valid() { // another process has renewed it
		return l.last.Token, nil
	}
	x := l.last
	config := oauth2.Config{ClientID: x.ClientID, ClientSecret: x.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: x.TokenURL, AuthStyle: x.AuthStyle}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, l.client)
	x.Token, err = config.TokenSource(ctx, &oauth2.Token{RefreshToken: x.Token.RefreshToken}).Token()
	if err != nil {
		return nil, errLogin
	}
	l.last = x
	return x.Token, l.save(x)
}

// Login asks the user to log in at a server over HTTP: show is given the page to open in a browser on this machine. It
// returns when the server takes what the user was granted, which is stored then.
func (p *Pool) Login(ctx context.Context, name string, show func(page string)) error {
	s := p.server(name)
	switch {
	case s == nil:
		return errors.New("it is not there")
	case s.URL == "":
		return errors.New("it is a program, which needs no login")
	}
	refusal := make(chan error, 1)
	handler, end, err := s.askUser(show, refusal)
	if err != nil {
		return err
	}
	defer end()
	s.oauth = handler
	x, err := s.open(ctx)
	if err == nil {
		x.end()
		return nil
	}
	select {
	case err = <-refusal:
	default:
	}
	return cmp.Or(context.Cause(ctx), err)
}

// LoginSecrets returns what must never be shown of the stored login of a server, with the directory of a Pool's cache.
func LoginSecrets(s Server, cache string) []string {
	if s.URL == "" {
		return nil
	}
	x := loginOf(s, cache).read()
	if x.Token == nil {
		return nil
	}
	all := []string{x.Token.AccessToken, x.Token.RefreshToken, x.ClientSecret}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// Logout forgets the login of a server, and reports whether there was one.
func (p *Pool) Logout(name string) (bool, error) {
	s := p.server(name)
	if s == nil {
		return false, nil
	}
	l := loginOf(s.Server, p.Cache)
	if l.read().Token == nil {
		return false, nil
	}
	return true, durable.New(durable.OS{}).Remove(l.path)
}

// askUser returns what asks the user to log in, and listens on this machine for the answer of the browser until end is
// called. Why there is no login goes to refusal, if the browser says so.
func (s *server) askUser(show func(page string), refusal chan<- error) (_ auth.OAuthHandler, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	back := "http://" + listener.Addr().String() + "/callback"
	answers := make(chan url.Values, 1)
	browser := &http.Server{ReadHeaderTimeout: oauthTimeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/callback" {
				http.NotFound(w, r)
				return
			}
			select {
			case answers <- r.URL.Query():
			default: // only the first counts
			}
			fmt.Fprintln(w, "muster has the answer. You can close this page.")
		})}
	go func() { _ = browser.Serve(listener) }() // it ends with end
	stored := loginOf(s.Server, s.pool.Cache)
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "muster", RedirectURIs: []string{back},
				GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
				TokenEndpointAuthMethod: "none"}},
		RequestRefreshToken: true, Client: stored.client,
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (
			*auth.AuthorizationResult, error) {
			if page, err := url.Parse(a.URL); err != nil || page.Scheme != "https" && page.Scheme != "http" {
				return nil, errors.New("the page for its login is no page of the web")
			}
			show(a.URL)
			select {
			case q := <-answers:
				if why := cmp.Or(q.Get("error_description"), q.Get("error")); why != "" {
					err := errors.New("the login was refused: " + said(why))
					refusal <- err
					return nil, err
				}
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			stored.mu.Lock()
			defer stored.mu.Unlock()
			stored.last = login{URL: s.URL, ClientID: c.ClientID, ClientSecret: c.ClientSecret,
				TokenURL: c.Endpoint.TokenURL, AuthStyle: c.Endpoint.AuthStyle, Token: t}
			return stored, stored.save(stored.last)
		}})
	return handler, func() { _ = browser.Close() }, err
}
