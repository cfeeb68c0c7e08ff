package proxies

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
)

func TestLast(t *testing.T) {
	https := func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "https" {
			return &url.URL{Scheme: "http", Host: "own:1"}, nil
		}
		return nil, nil
	}
	for _, c := range []struct{ variable, all, no, asked, want string }{
		{"ALL_PROXY", "socks5h://p:1080", "", "http://model.example/v1", "socks5h://p:1080"},
		{"all_proxy", "socks5h://p:1080", "", "http://model.example/v1", "socks5h://p:1080"},
		{"ALL_PROXY", "socks5h://p:1080", "", "https://model.example/v1", "http://own:1"},
		{"ALL_PROXY", "socks://p:1080/", "", "http://model.example/v1", "socks5://p:1080/"},
		{"ALL_PROXY", "SOCKS5://u:pw@p:1080", "", "http://model.example/v1", "socks5://u:pw@p:1080"},
		{"ALL_PROXY", "p:3128", "", "http://model.example/v1", "http://p:3128"},
		{"ALL_PROXY", "https://p", "", "http://model.example/v1", "https://p"},
		{"ALL_PROXY", "http://p", "example.org,.model.example", "http://a.model.example/v1", ""},
		{"ALL_PROXY", "http://p", "model.example:8080", "http://model.example:8080/v1", ""},
		{"ALL_PROXY", "http://p", "10.0.0.0/8", "http://10.1.2.3/v1", ""},
		{"ALL_PROXY", "http://p", "*", "http://model.example/v1", ""},
		{"ALL_PROXY", "http://p", "", "http://localhost:11434/v1", ""},
		{"ALL_PROXY", "http://p", "", "http://127.0.0.1:11434/v1", ""},
		{"ALL_PROXY", "", "", "http://model.example/v1", ""},
	} {
		t.Run(c.variable+"="+c.all+" "+c.asked, func(t *testing.T) {
			for _, name := range []string{"ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
				t.Setenv(name, "")
			}
			t.Setenv(c.variable, c.all)
			t.Setenv("no_proxy", c.no)
			r, _ := http.NewRequest(http.MethodGet, c.asked, nil)
			u, err := Last(https)(r)
			if got := u; err != nil || got != nil && got.String() != c.want || got == nil && c.want != "" {
				t.Errorf("%v, %v; want %q", u, err, c.want)
			}
			if Last(nil) != nil {
				t.Error("a client without proxies has one")
			}
		})
	}
}

func TestUnknownKind(t *testing.T) {
	u, err := fromAll("socks4://p:1080", "")(&url.URL{Scheme: "https", Host: "model.example"})
	if u != nil || !errors.Is(err, ErrKind) {
		t.Errorf("%v, %v", u, err)
	}
}
