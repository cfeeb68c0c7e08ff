package redact

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// FromEnviron returns the values of an environment that are secret: those of the variables that IsCredential names, and
// what InText finds. The path of a file or a socket is no secret.
func FromEnviron(env []string) (values []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values = append(values, InVariable(name, value)...)
		isPath := filepath.IsAbs(value) && strings.Contains(value[1:], "/")
		if !IsCredential(name) || isPath {
			continue
		}
		if !strings.Contains(value, "://") {
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

// InVariable returns what is secret in the value of a variable, whatever its name says.
func InVariable(name, value string) []string {
	if strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.Contains(value, "://") {
		value = "http://" + value // as programs take it
	}
	return InText(value)
}

// InHeader returns what is secret in a header of a request: its value, if its name is that of a credential, without the
// word before the token.
func InHeader(name, value string) []string {
	if token, ok := cutToken(value); ok {
		value = token
	} else if !IsCredential(name) && !strings.HasSuffix(strings.ToUpper(name), "AUTHORIZATION") {
		return nil
	}
	return []string{value}
}

// cutToken returns the token of a header such as Authorization.
func cutToken(value string) (token string, ok bool) {
	for _, method := range []string{"bearer ", "basic "} {
		if i := strings.Index(strings.ToLower(value), method); i >= 0 {
			return value[i+len(method):], true
		}
	}
	return "", false
}

// InText returns what is secret in a command, a setting or another text that programs read: what InURLs finds, and what
// the text gives to the name of a key or a password, as in TOKEN=..., -Dkey.password=..., --password ...,
// X-Api-Key: ... and Bearer .... A path, and what a shell takes from elsewhere, is no secret.
func InText(text string) (values []string) {
	values = InURLs(text)
	before, isNamed := "", false // the word before, and whether it names what this one is
	for _, word := range strings.Fields(text) {
		name, value, hasValue := strings.Cut(word, "=")
		for hasValue && !namesSecret(name) {
			name, value, hasValue = strings.Cut(value, "=")
		}
		bare := strings.ToLower(strings.Trim(word, quotes))
		isHeader := bare == "bearer" || bare == "basic"
		switch {
		case isHeader || hasValue:
		case before == "-u" || before == "--user": // of curl
			_, value, _ = strings.Cut(word, ":")
		case isNamed:
			value = word
		}
		value = strings.Trim(value, quotes)
		if value != "" && !strings.ContainsAny(value, "$`") && !strings.ContainsAny(value[:1], "/.~@-") {
			values = append(values, value)
		}
		isNamed = isHeader || !hasValue && namesSecret(bare) &&
			(strings.HasPrefix(bare, "-") || strings.HasSuffix(bare, ":"))
		before = word
	}
	return values
}

// quotes are what may stand around a value in a text.
const quotes = "\"'`{}[](),;\\"

// namesSecret reports whether a text ends in a name that holds a key or a password wherever it stands.
func namesSecret(name string) bool {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, strings.Trim(name, quotes+":"))
	last := strings.LastIndexFunc(name, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	if last >= 0 && name[last] == '/' { // a file
		return false
	}
	return hasPart(name[last+1:])
}

// InURLs returns what is secret in the URLs of a text: their passwords, the users that have none, and what looks like a
// key in a query. A text that is only a URL may be one that is called: there each long value of its query is taken for
// a key.
func InURLs(text string) (values []string) {
	isAlone := !strings.ContainsAny(text, " \t\n")
	for {
		scheme, rest, ok := strings.Cut(text, "://")
		if !ok {
			return values
		}
		text = rest
		if end := strings.IndexAny(rest, " \t\r\n"); end >= 0 {
			rest = rest[:end]
		}
		// People forget to escape what stands in a password. It ends at the last @ before the path.
		authority, query, _ := strings.Cut(rest, "?")
		authority, _, _ = strings.Cut(authority, "/")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			user, password, ok := strings.Cut(authority[:at], ":")
			if !ok && (strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")) {
				password = user // the user of another scheme is a person
			}
			values = appendDecoded(values, password)
		}
		query, _, _ = strings.Cut(query, "#")
		for pair := range strings.SplitSeq(query, "&") {
			name, v, _ := strings.Cut(pair, "=")
			isLong := isAlone && len(v) >= longQuery && strings.ContainsAny(v, "0123456789")
			if IsCredential(name) || name == "sig" || name == "code" || isLong && !strings.Contains(v, "%2F") {
				values = appendDecoded(values, strings.Trim(v, quotes))
			}
		}
	}
}

// appendDecoded appends a piece of a URL as it is, and as it is meant.
func appendDecoded(values []string, v string) []string {
	if v == "" {
		return values
	}
	if plain, err := url.QueryUnescape(v); err == nil && plain != v {
		values = append(values, plain)
	}
	return append(values, v)
}

// longQuery is the length from which on a value in a query is taken for a key, whatever its name is. Versions and dates
// are shorter.
const longQuery = 20

// IsCredential reports whether a variable of the environment has the name of one that holds a credential. It looks at
// the words of the name, so that GIT_AUTHOR_NAME and KEYBOARD are none, and GITHUB_TOKEN and DbPassword are.
func IsCredential(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains(harmless, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") {
		return false
	}
	if strings.HasPrefix(name, "BUNDLE_") && strings.Contains(name, "__") || // Bundler's credentials for a host
		strings.HasPrefix(name, "UV_INDEX_") && strings.HasSuffix(name, "_USERNAME") { // of uv; some hosts take a token
		return true
	}
	isEnding := func(ending string) bool { return strings.HasSuffix(name, ending) }
	if slices.ContainsFunc(about, isEnding) {
		return false
	}
	isBetween := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	isWord := func(word string) bool { return slices.Contains(words, strings.TrimRight(word, "0123456789")) }
	return slices.ContainsFunc(endings, isEnding) || hasPart(name) ||
		slices.ContainsFunc(strings.FieldsFunc(name, isBetween), isWord)
}

// hasPart reports whether a name in capital letters has one of the parts.
func hasPart(name string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// What the names of credentials have in common.
var (
	// words are whole words of a name, between underscores and such.
	words = []string{"KEY", "KEYS", "AUTH", "PASS", "PW", "PAT", "PIN", "JWT", "SAS", "BEARER", "COOKIE", "COOKIES",
		"CREDS", "CRED", "SIGNATURE", "CERTIFICATE", "WEBHOOK", "DSN", "NETRC", "OTP"}
	// parts are what may stand anywhere in a word.
	parts = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY",
		"PRIVATEKEY", "AUTHTOKEN", "OAUTH"}
	// endings end a name, also without an underscore before them.
	endings = []string{"_PWD", "CONNECTION_STRING", "CONNECTIONSTRING"}
	// about are the endings of names that say something of a credential.
	about = []string{"_HOST", "_DOMAIN", "_PROVIDER", "_METHOD", "_TYPE", "_ALGORITHM", "_TIMEOUT", "_LIMIT", "_TTL"}
	// harmless names only look like those of credentials.
	harmless = []string{"MUSTER_ENVIRONMENT_PASS", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "GOAUTH",
		"SYSTEM_CERTIFICATE_PATH"}
)
