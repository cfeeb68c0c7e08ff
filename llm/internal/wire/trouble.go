package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/llm"
)

// This file recognises by their words what statuses and codes do not tell. Servers agree on few codes, and send the
// same status for troubles that pass in a minute and for those that do not pass at all. All texts are lower case.

// hasAny reports whether a text contains one of some words.
func hasAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// spendCodes are the codes and types of an account without credit.
var spendCodes = []string{
	"insufficient_quota", "billing_hard_limit_reached", "billing_error", "billing_not_active", "insufficient_balance",
	"exceeded_current_quota_error", "Arrearage", "1113",
}

// spendWords are what servers say of an account without credit.
var spendWords = []string{
	"credit balance is too low", "insufficient balance", "insufficient account balance", "insufficient credit",
	"insufficient fund", "not enough credit", "out of credits", "no credits", "requires more credits",
	"used all available credits", "credits are depleted", "credits have been exhausted", "exceeded your current quota",
	"quota has been exhausted", "quota exhausted", "free allocated quota exceeded", "spend limit", "spending limit",
	"usage limit", "billing hard limit", "account is not active", "account is suspended", "please recharge",
	"in arrears", "overdue payment", "unpaid invoice", "only afford", "can afford", "cannot afford", "can't afford",
	"affordable",
}

// isSpendLimit reports whether the credit or the quota of the account is gone, which no waiting brings back. A limit
// that ends within an hour by the server's own words is one on the rate: some servers call the tokens of a minute a
// quota as well.
func isSpendLimit(f errorBody, status int) bool {
	if status == http.StatusPaymentRequired {
		return true
	}
	if status >= 500 || f.wait > 0 && f.wait <= MaxWait {
		return false
	}
	message := strings.ToLower(f.Message)
	if strings.HasPrefix(message, "allocated quota exceeded") {
		return false
	}
	return slices.ContainsFunc(spendCodes, f.hasWord) || hasAny(message, spendWords...)
}

// contextCodes are the codes and types of a conversation that is too long.
var contextCodes = []string{
	"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "request_too_large",
	"1261",
}

// contextWords are what servers say of a conversation that is too long, where isTooLong does not see it.
var contextWords = []string{
	"prompt is too long", "prompt too long", "input is too long", "maximum context length", "maximum prompt length",
	"reduce the length", "prompt exceeds max length", "range of input length", "max message tokens",
	"contextwindowexceeded", "request too large", "payload size exceeds", "too many total text bytes",
}

// The words of a sentence that says that a conversation is too long: what is measured, and how it compares. Other is
// what else may be too long.
var (
	measured = pattern(`context|prompt|input|messages|conversation|total tokens|\btoken limit|max_seq_len|` +
		`sequence length|requested tokens|too many tokens`)
	unit    = pattern(`token|length|\bsize\b|window|limit|max_seq_len|max_input_len|overflow|context`)
	exceeds = pattern(`exceed|too long|too large|too many|longer than|greater than|larger than|more than|` +
		`overflow|must be (less|<=|at most)|must have less|should be less|beyond|surpass|does not fit`)
	other = pattern(`per (minute|min|day|hour|second)|rate limit|\b[rt]p[md]\b|string too long|` +
		`array too long|above maximum (string|array)|image|attachment|\btools?\b|function name|metadata|` +
		`stop sequence|file size`)
	replyLimit = pattern(`max_(completion_|output_|new_)?tokens|output tokens|completion tokens`)
	wholeLimit = pattern(`context|input|prompt`)
)

// pattern returns an expression that is compiled when it is first used: few processes meet such an error.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// isContextFull reports whether the conversation is longer than the model's window.
func isContextFull(f errorBody) bool {
	message := strings.ToLower(f.Message)
	return slices.ContainsFunc(contextCodes, f.hasWord) || hasAny(message, contextWords...) || isTooLong(message)
}

// isTooLong reports whether a sentence says of the conversation that it is too long, in whatever words. A limit on the
// length of the reply alone is another error.
func isTooLong(message string) bool {
	if !measured().MatchString(message) || !unit().MatchString(message) || !exceeds().MatchString(message) {
		return false
	}
	return !other().MatchString(message) && (!replyLimit().MatchString(message) || wholeLimit().MatchString(message))
}

// usualWindow is the window of a model of which nothing is known.
const usualWindow = 128_000

// bySize returns e, or ContextFull in place of a BadRequest that was most probably refused for its size: the server
// says nothing and the window is nearly full, or it says anything but a limit of the reply and the window is too small
// by any count. A token has about four bytes, and rarely fewer than three.
func (x *Exchange) bySize(e *llm.Error, body []byte) *llm.Error {
	if e.Kind != llm.BadRequest || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return e
	}
	size, message := PromptSize(x.request), strings.ToLower(parseErrorBody(body).Message)
	nearlyFull := size/3 >= cmp.Or(x.Window, usualWindow)*9/10
	tooSmall := x.Window > 0 && size/4 >= x.Window && !replyLimit().MatchString(message)
	if saysNothing(message) && nearlyFull || tooSmall {
		return &llm.Error{Kind: llm.ContextFull, Status: e.Status, Err: fmt.Errorf(
			"the conversation of %d KB is probably too long for %s: %w", size>>10, x.Model, e.Err)}
	}
	return e
}

// saysNothing reports whether a message has no more in it than that the request is refused.
func saysNothing(message string) bool {
	switch strings.Trim(message, " .!") {
	case "", "{}", "error", "unknown error", "bad request", "invalid request", "invalid_request_error",
		"unprocessable entity":
		return true
	}
	return strings.HasPrefix(message, "<") // a page of a proxy
}

// How servers name a tool by its position in the request: tools.3.custom, tools[3].function, "tools",3 in the path of a
// field, and tools[0].function_declarations[3]. aboutTools finds other errors about tools.
var (
	toolPosition = pattern(`\btools?(?:\.|\[|"\s*,\s*)(\d+)`)
	declaration  = pattern(`function_?declarations(?:\.|\[)(\d+)`)
	aboutTools   = pattern(`\btools?\b|\bfunctions?\b|schema`)
	takesNone    = pattern(`not support(ed)? (the )?(tool|function)|(tool|function)[a-z _-]* (is|are) not supported`)
)

// maxToolError is how much of the body of an error is searched for tools, in bytes.
const maxToolError = 8 << 10

// byTool sets the tools without which a request may be taken that is refused because of one.
func (x *Exchange) byTool(e *llm.Error, body []byte) *llm.Error {
	var optional []string
	for _, t := range x.request.Tools {
		if t.Optional {
			optional = append(optional, t.Name)
		}
	}
	if e.Kind != llm.BadRequest || len(optional) == 0 {
		return e
	}
	said := string(body[:min(len(body), maxToolError)])
	for _, name := range optional {
		named, err := regexp.MatchString(`(^|[^\w-])`+regexp.QuoteMeta(name)+`($|[^\w-])`, said)
		if err == nil && named {
			e.Tools = append(e.Tools, name)
		}
	}
	if said = strings.ToLower(said); len(e.Tools) > 0 || takesNone().MatchString(said) {
		return e
	}
	at := declaration().FindStringSubmatch(said)
	if at == nil {
		at = toolPosition().FindStringSubmatch(said)
	}
	if at != nil {
		if i, err := strconv.Atoi(at[1]); err == nil && i < len(x.request.Tools) && x.request.Tools[i].Optional {
			e.Tools = []string{x.request.Tools[i].Name}
			e.Err = fmt.Errorf("%w (the tool is %s)", e.Err, e.Tools[0])
			return e
		}
	}
	if aboutTools().MatchString(said) {
		e.Tools = optional
	}
	return e
}

// PromptSize returns how many bytes of a request are text.
func PromptSize(r llm.Request) (n int) {
	for _, s := range r.System {
		n += len(s)
	}
	for _, t := range r.Tools {
		n += len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		n += textSize(m.Parts)
	}
	return n
}

// textSize is the Size of parts without their images.
func textSize(ps llm.Parts) (n int) {
	for _, p := range ps {
		switch p := p.(type) {
		case llm.Image:
		case llm.Result:
			n += textSize(p.Parts)
		default:
			n += llm.Parts{p}.Size()
		}
	}
	return n
}

// historyWords are what servers say of a conversation whose calls and results do not match, whose roles do not follow
// each other as they must, or whose thinking they do not take back.
var historyWords = []string{
	"without `tool_result`", "unexpected `tool_use_id`", "`tool_use` blocks can only", "tool_use ids were found",
	"did not have response messages", "must be a response to a prec", "must be followed by tool messages",
	"no tool output found for function call", "no tool call found for function call output",
	"not the same number of function calls", "number of function response parts",
	"function call turn comes immediately",
	"tool_call_id is not found", "tool result's tool id", "tool call id not found", "tool_call_ids",
	"roles must alternate", "' after role '", "unexpected role roleenum", "invalid_request_message_order",
	"expected last role", "without its required following item",
	"without its required 'reasoning' item", "in `thinking` block", "must start with a thinking block",
	"`redacted_thinking` blocks", "thought signature", "thought_signature",
	"must be passed back", "reasoning_content is missing", "missing `reasoning_content`", "missing reasoning_content",
	"encrypted content", "duplicate tool call id", "`tool_use` ids must be unique",
}

// notUnicode finds what servers, and the libraries and data bases behind them, say of characters that they do not take:
// half of a surrogate pair, NUL, and bytes that are no UTF-8.
var notUnicode = pattern(`surrogate|\butf-?8\b|unicode|hex escape|\bnul\b|null (byte|character)|\\u0000|\\x00|` +
	`\b0x00\b|(invalid|illegal|control) character`)

// isNotUnicode reports whether the server refuses a character of the conversation.
func isNotUnicode(f errorBody, status int) bool {
	message := strings.ToLower(f.Message)
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return notUnicode().MatchString(message)
	case http.StatusInternalServerError: // the server fails with each request that has one
		return strings.Contains(message, "surrogate")
	}
	return false
}

// isBadHistory reports whether the server refuses how the messages of the conversation follow each other.
func isBadHistory(f errorBody) bool {
	return hasAny(strings.ToLower(strings.Join([]string{f.Message, f.Type, string(f.Param)}, "\n")), historyWords...)
}

// modelWords are what servers say of a model that they do not have, with another status than 404.
var modelWords = []string{
	"model not exist", "model does not exist", "invalid model", "unknown model", "not a valid model", "no such model",
	"model not found", "unsupported model", "model_decommissioned", "has been decommissioned", "model is not supported",
}

// isUnknownModel reports whether the server does not have the model.
func isUnknownModel(f errorBody) bool {
	return f.hasWord("model_not_found") || f.hasWord("model_decommissioned") ||
		hasAny(strings.ToLower(f.Message), modelWords...)
}

// The times to wait that servers give in the body of an error instead of in a header.
var (
	waitField = pattern(`"?retry_?(?:delay|after)(?:_seconds)?"?\s*[:=]\s*"?(\d+(?:\.\d+)?)(ms|s)?`)
	waitWords = pattern(`(?:try again|retry|wait)(?: again)? (?:in|after|for) ` +
		`((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|minutes?|hours?|days?|s|m|h|d)\b?[ ,]*)+)`)
	waitPart = pattern(`(\d+(?:\.\d+)?)\s*([a-z]+)`)
)

// waitIn returns how long the body of an error says to wait, or 0 if it says nothing.
func waitIn(body []byte) (d time.Duration) {
	text := strings.ToLower(string(body))
	if m := waitField().FindStringSubmatch(text); m != nil {
		return waitOf(m[1], m[2])
	}
	if m := waitWords().FindStringSubmatch(text); m != nil {
		for _, part := range waitPart().FindAllStringSubmatch(m[1], -1) {
			d += waitOf(part[1], part[2])
		}
	}
	return d
}

// waitOf returns a number of units of time. Without a unit they are seconds.
func waitOf(number, unit string) time.Duration {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	switch {
	case unit == "ms" || strings.HasPrefix(unit, "milli"):
		n /= 1000
	case strings.HasPrefix(unit, "m"):
		n *= 60
	case strings.HasPrefix(unit, "h"):
		n *= 60 * 60
	case strings.HasPrefix(unit, "d"):
		n *= 24 * 60 * 60
	}
	return clampSeconds(n)
}
