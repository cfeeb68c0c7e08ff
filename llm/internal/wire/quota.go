package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"muster/llm"
)

// quotaHeaders are the names of headers about the limits of a minute, by what they limit. NAME stands for limit,
// remaining or reset.
var quotaHeaders = map[string][]string{
	"requests": {"Anthropic-Ratelimit-Requests-NAME", "X-Ratelimit-NAME-Requests", "X-Ratelimit-NAME-Req-Minute"},
	"tokens": {"Anthropic-Ratelimit-Tokens-NAME", "Anthropic-Ratelimit-Input-Tokens-NAME",
		"X-Ratelimit-NAME-Tokens", "X-Ratelimit-NAME-Tokens-Minute"},
}

// answerOf returns what an answer says of the server's limits.
func answerOf(r *http.Response, now time.Time) *llm.Answer {
	q := quotas(r.Header, now)
	return &llm.Answer{Status: r.StatusCode, Requests: q["requests"], Tokens: q["tokens"]}
}

// quotas returns the limits that the headers of an answer speak of, by what they limit. A header may say that nothing
// remains without saying of what: such a quota has no Limit.
func quotas(h http.Header, now time.Time) map[string]llm.Quota {
	all := map[string]llm.Quota{}
	for of, names := range quotaHeaders {
		for _, name := range names {
			get := func(what string) string { return h.Get(strings.Replace(name, "NAME", what, 1)) }
			limit, err1 := strconv.Atoi(get("limit"))
			remaining, err2 := strconv.Atoi(get("remaining"))
			if err2 != nil || err1 != nil && remaining > 0 {
				continue
			}
			q := llm.Quota{Limit: max(limit, 0), Remaining: max(remaining, 0), Reset: resetIn(get("reset"), h, now)}
			if tightest, ok := all[of]; !ok || q.Remaining < tightest.Remaining {
				all[of] = q
			}
		}
	}
	return all
}

// resetIn returns how long it is until a limit is reset, which servers say as a time, a duration or in seconds; 0 if
// the text says nothing.
func resetIn(text string, h http.Header, now time.Time) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return max(d, 0)
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return waitUntil(t, h, now)
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && s < 1e6 { // a larger one is a time of day
		return clampSeconds(s)
	}
	return 0
}
