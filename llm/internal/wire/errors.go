// Package wire is what the vendor adapters share. Exchange is one request: it sends the request, and reads the
// events of the stream that answers it. Peer turns answers into errors of package llm, Endpoint makes the URL,
// RetryAfter reads how long to wait, and Name makes names that every vendor accepts.
//
// It speaks HTTP itself. The vendors' own libraries would add 36 MB to the program and about 3 ms to each start of a
// process. They are no help with what differs between servers: errors, streams, and the order of a schema's properties.
//
// Every error that leaves the package is an *llm.Error whose text is one sentence for people. It knows no
// vendor's request or reply format.
package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/clock"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/llm"
)

// Peer is the server and the model that are spoken to, as errors name them.
type Peer struct {
	URL      string // the base URL
	Model    string
	Window   int  // of the model, in tokens; 0 if it is not known
	IsVendor bool // the server is the vendor's own
	Custom

	// Provider marks the thinking that this peer makes. No other takes it back: what one server signed or
	// encrypted means nothing to another, and a conversation may change its server between two runs.
	Provider string
	// Maker tells the model and the key from others at the same server, without naming the key. What the server has
	// encrypted for one of them it takes back from no other.
	Maker string
}

// SetMaker makes Maker of the model and a key.
func (p *Peer) SetMaker(key string) { p.Maker = hash(p.Model, key)[:16] }

// Account returns the account of the peer for a key, which may be in a header too. allowed has what the user allows.
func (p Peer) Account(key string, allowed llm.Account) llm.Account {
	secrets := []string{strings.TrimRight(p.URL, "/"), key}
	for _, name := range slices.Sorted(maps.Keys(p.Header)) {
		secrets = append(secrets, redact.InHeader(name, p.Header[name])...)
	}
	allowed.ID, allowed.Model = hash(secrets...)[:32], p.Model
	return allowed
}

// hash returns a name for texts from which they cannot be told.
func hash(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:])
}

// Custom is what the user wants in each request beside what the API says. Header sets headers, over the adapter's own.
// Extra sets fields of the body, over the adapter's own; null leaves a field out.
type Custom struct {
	Header map[string]string
	Extra  map[string]json.RawMessage
	// Observe sees each answer before its body is read, and may put one in its place that reads the same. Nil: nobody
	// looks.
	Observe func(*http.Response)
}

// NewPeer returns the peer at a base URL, or at the vendor's if it is "".
func NewPeer(url, vendorURL, model string) Peer {
	p := Peer{URL: cmp.Or(url, vendorURL), Model: model}
	p.IsVendor = p.Host() == Peer{URL: vendorURL}.Host()
	return p
}

// Host returns the host of the peer's URL.
func (p Peer) Host() string {
	if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return "the server" // a URL that cannot be parsed may hold a key anywhere
}

// shownURL returns the peer's URL without what may be secret: a password, and the query.
func (p Peer) shownURL() string {
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return p.Host()
	}
	return withoutSecrets(u)
}

// withoutSecrets returns a URL without its password, its query and its fragment.
func withoutSecrets(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}

// SetAPI makes Provider of the name of the API that is spoken.
func (p *Peer) SetAPI(api string) {
	p.Provider = api
	if !p.IsVendor {
		p.Provider += "@" + p.Host()
	}
}

// errorBody is the body of an error, of either vendor and most servers that imitate them. They agree on
// little, so every field may be empty.
type errorBody struct {
	Type    string    `json:"type"`
	Code    errorCode `json:"code"`
	Message string    `json:"message"`
	Param   errorCode `json:"param"` // with a few servers the message itself

	wait time.Duration // how long the body says to wait; 0 if it says nothing
}

// errorCode is a word, or with some servers a number, which is kept as text.
type errorCode string

// UnmarshalJSON reads a string, or anything else as it stands.
func (c *errorCode) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(c)) != nil {
		*c = errorCode(data)
	}
	return nil
}

// hasWord reports whether the code or the type is word.
func (f errorBody) hasWord(word string) bool { return string(f.Code) == word || f.Type == word }

// parseErrorBody reads {"error":{...}}, {"error":"..."}, {"code":..,"message":..}, a list of such an object, and plain
// text.
func parseErrorBody(body []byte) (f errorBody) {
	defer func() { f.wait = waitIn(body) }()
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		errorBody
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) == nil {
		f = outer.errorBody
		if len(outer.Error) > 0 && string(outer.Error) != "null" {
			f = errorBody{Message: outer.Message}
			if json.Unmarshal(outer.Error, &f) != nil {
				_ = json.Unmarshal(outer.Error, &f.Message)
			}
		}
	}
	f.Message = cmp.Or(f.Message, firstLine(body))
	return f
}

// firstLine returns the first line of a body, at most 300 bytes of it.
func firstLine(b []byte) string {
	s, _, _ := strings.Cut(string(bytes.TrimSpace(b)), "\n")
	return text.CutBytes(text.OneLine(s), 300)
}

// errorForResponse returns what an answer with an error status means.
func (p Peer) errorForResponse(status int, h http.Header, body []byte) *llm.Error {
	f := parseErrorBody(body)
	e := p.errorFor(status, f)
	e.Status = status
	if e.Kind == llm.Overloaded || e.Kind == llm.Limited {
		now := time.Now()
		asked := cmp.Or(askedWait(h, now), f.wait)
		if e.After = min(asked, MaxWait); asked > MaxWait {
			e.Err = fmt.Errorf("it asks to wait until %s, which is more than %s: %w",
				now.Add(asked).Format("2006-01-02 15:04:05"), clock.Duration(MaxWait), e.Err)
		}
	}
	return e
}

// ErrorInStream returns what an error event inside a stream means; body is its JSON.
func (p Peer) ErrorInStream(body []byte) *llm.Error {
	f := parseErrorBody(body)
	status := statusOf(f)
	if status == 0 {
		return llm.Errorf(llm.Incomplete, "%s broke off its answer: %s", p.Host(), text.CutBytes(f.Message, maxSays))
	}
	e := p.errorFor(status, f)
	if e.Kind == llm.Limited {
		e.After = min(f.wait, MaxWait)
	}
	return e
}

// statuses has the HTTP status that an error in a stream would have had before the stream began, by its code or
// type.
var statuses = map[string]int{
	"overloaded_error": 529, "timeout_error": 504,
	"api_error": 500, "server_error": 500, "internal_error": 500, "internal_server_error": 500,
	"rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
	"request_too_large": 413, "context_length_exceeded": 413, "exceed_context_size_error": 413,
	"not_found_error": 404, "model_not_found": 404,
	"permission_error": 403, "billing_error": 402,
	"authentication_error": 401, "invalid_api_key": 401,
	"invalid_request_error": 400, "invalid_prompt": 400,
}

// statusOf returns the HTTP status that the error would have had before the stream began, or 0 if it is
// unknown.
func statusOf(f errorBody) int {
	if status := cmp.Or(statuses[string(f.Code)], statuses[f.Type]); status != 0 {
		return status
	}
	if n, err := strconv.Atoi(string(f.Code)); err == nil && n >= 400 && n < 600 {
		return n
	}
	switch {
	case isSpendLimit(f, 0):
		return http.StatusPaymentRequired
	case isContextFull(f):
		return http.StatusRequestEntityTooLarge
	}
	return 0
}

// errorFor returns the error for a status and a body. The order of the cases matters: vendors report an
// empty account and a full context window with statuses that otherwise mean something else.
func (p Peer) errorFor(status int, f errorBody) *llm.Error {
	says := text.CutBytes(cmp.Or(f.Message, f.Type, string(f.Code), http.StatusText(status), "no reason given"),
		maxSays)
	switch {
	case isSpendLimit(f, status):
		return llm.Errorf(llm.Spent, "the account at %s has a spend limit or no credit left: %s", p.Host(), says)
	case status == http.StatusRequestEntityTooLarge, status != http.StatusTooManyRequests && isContextFull(f),
		status == http.StatusTooManyRequests && strings.HasPrefix(strings.ToLower(f.Message), "request too large"):
		return llm.Errorf(llm.ContextFull, "the conversation is too long for %s: %s", p.Model, says)
	case status < 500 && status != http.StatusTooManyRequests && isBadHistory(f):
		return llm.Errorf(llm.BadHistory, "%s refuses the order of the messages: %s", p.Host(), says)
	case isNotUnicode(f, status):
		return llm.Errorf(llm.BadHistory, "%s refuses a character of the conversation: %s", p.Host(), says)
	case f.hasWord("engine_overloaded_error"):
		return llm.Errorf(llm.Overloaded, "%s is overloaded: %s", p.Host(), says)
	case status == http.StatusTooManyRequests:
		return llm.Errorf(llm.Limited, "%s limits the rate: %s", p.Host(), says)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.Errorf(llm.Denied, "%s denies access: %s", p.Host(), says)
	case status == http.StatusProxyAuthRequired:
		return llm.Errorf(llm.Denied, wantsLogin, p.Host())
	case status == http.StatusNotFound:
		return llm.Errorf(llm.Denied, "%s does not know the model %q, or its URL is another: %s", p.shownURL(),
			p.Model, says)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status >= 499:
		return llm.Errorf(llm.Overloaded, "%s answers %d: %s", p.Host(), status, says)
	case isUnknownModel(f):
		return llm.Errorf(llm.Denied, "%s does not know the model %q: %s", p.shownURL(), p.Model, says)
	default:
		return llm.Errorf(llm.BadRequest, "%s refuses the request: %s", p.Host(), says)
	}
}

// askedWait returns how long the answer says to wait, or 0 if it says nothing. It reads retry-after-ms,
// retry-after in seconds or as a date, and otherwise the reset of a limit that has nothing remaining. A
// time is counted from the answer's own Date, or from now if it has none.
func askedWait(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampSeconds(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			// 0 says at once, which is not the same as saying nothing.
			return max(clampSeconds(s), time.Millisecond)
		}
		if t, err := http.ParseTime(v); err == nil {
			return waitUntil(t, h, now)
		}
	}
	var d time.Duration
	for _, q := range quotas(h, now) {
		if q.Limit == 0 || q.Remaining == 0 {
			d = max(d, q.Reset)
		}
	}
	return d
}

// MaxWait is the longest time that a server may make us wait before the request is sent again. Whoever comes back too
// early is told to wait again. It also bounds what a clock that is off, ours or the server's, can do.
const MaxWait = time.Hour

// waitUntil returns how long it is to a time that the answer names. A time in the past means at once.
func waitUntil(t time.Time, h http.Header, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil { // both by the clock of who says so
		now = date
	}
	return max(t.Sub(now), time.Millisecond)
}

// clampSeconds converts seconds to a Duration and limits absurd values.
func clampSeconds(s float64) time.Duration {
	if !(s > 0) { // not a number, too
		return 0
	}
	const longest = 100 * 365 * 24 * time.Hour
	return time.Duration(min(s, longest.Seconds()) * float64(time.Second))
}
