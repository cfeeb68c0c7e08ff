package redact

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// FromEnviron returns the values of an environment that are secret: those of the variables that IsCredential names, and
// what InURL finds. The path of a file or a socket is no secret.
func FromEnviron(env []string) (values []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.Contains(value, "://") {
			value = "http://" + value // as programs take it
		}
		isURL := strings.Contains(value, "://")
		if isURL {
			values = append(values, InURL(value)...)
		}
		if _, token, ok := strings.Cut(value, "Bearer "); ok { // a header
			values = append(values, token)
		} else if _, token, ok := strings.Cut(value, "Basic "); ok {
			values = append(values, token)
		}
		isPath := filepath.IsAbs(value) && strings.Contains(value[1:], "/")
		if !IsCredential(name) || isPath {
			continue
		}
		if !isURL {
			values = append(values, value)
			continue
		}
		// Of a URL that is secret itself, such as that of a webhook, the host and short words are not.
		isEnd := func(r rune) bool { return strings.ContainsRune("/?&=#", r) }
		for _, part := range strings.FieldsFunc(value, isEnd) {
			if len(part) >= minPiece && strings.ContainsAny(part, "0123456789") {
				values = append(values, part)
			}
		}
	}
	return values
}

// InURL returns what is secret in a text that is a URL or ends in one: its password, its user if it has no password,
// and what looks like a key in its query. It returns nil for any other text.
func InURL(text string) (values []string) {
	start := strings.Index(text, "://")
	if start < 0 || !strings.ContainsAny(text, "@?") {
		return nil
	}
	for start > 0 && isSchemeChar(text[start-1]) {
		start--
	}
	u, err := url.Parse(text[start:])
	if err != nil || u.Host == "" {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		values = append(values, password)
	} else if u.User != nil && strings.HasPrefix(u.Scheme, "http") { // the user of another scheme is a person
		values = append(values, u.User.Username())
	}
	for name, list := range u.Query() {
		for _, v := range list {
			if IsCredential(name) || name == "sig" || name == "code" || len(v) >= longQuery {
				values = append(values, v)
			}
		}
	}
	return values
}

// longQuery is the length from which on a value in a query is taken for a key, whatever its name is. Versions and dates
// are shorter.
const longQuery = 20

// isSchemeChar reports whether c may stand in the scheme of a URL.
func isSchemeChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// IsCredential reports whether a variable of the environment has the name of one that holds a credential. It looks at
// the words of the name, so that GIT_AUTHOR_NAME and KEYBOARD are none, and GITHUB_TOKEN and DbPassword are.
func IsCredential(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains(harmless, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") {
		return false
	}
	if strings.HasPrefix(name, "BUNDLE_") && strings.Contains(name, "__") { // Bundler's credentials for a host
		return true
	}
	for _, ending := range endings {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	isBetween := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	for _, word := range strings.FieldsFunc(name, isBetween) {
		if slices.Contains(words, strings.TrimRight(word, "0123456789")) {
			return true
		}
		for _, part := range parts {
			if strings.Contains(word, part) {
				return true
			}
		}
	}
	return false
}

// What the names of credentials have in common.
var (
	// words are whole words of a name, between underscores and such.
	words = []string{"KEY", "KEYS", "AUTH", "PASS", "PW", "PAT", "PIN", "JWT", "SAS", "BEARER", "COOKIE", "COOKIES",
		"CREDS", "CRED", "SIGNATURE", "CERTIFICATE", "WEBHOOK", "DSN", "LOGIN", "NETRC", "OTP"}
	// parts are what may stand anywhere in a word.
	parts = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY",
		"PRIVATEKEY", "AUTHTOKEN", "OAUTH"}
	// endings end a name, also without an underscore before them.
	endings = []string{"_PWD", "CONNECTION_STRING", "CONNECTIONSTRING"}
	// harmless names only look like those of credentials.
	harmless = []string{"MUSTER_ENVIRONMENT_PASS", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "GOAUTH"}
)
