package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"muster/llm"
)

// Maximum is the longest reply that a server is known to allow because it has said so, and the longest that the account
// can pay for. The zero Maximum knows none. It is safe for concurrent use.
type Maximum struct {
	Host       string // as errors name the server: its port is no limit
	tokens     atomic.Int64
	affordable atomic.Int64
	isTold     atomic.Bool // that replies are short because of the account
}

// UnknownMost is the longest reply that is asked for of a model whose longest one is not known.
const UnknownMost = 128_000

// firstLonger is the least limit that is asked for after a reply that was cut.
const firstLonger = 32_000

// Ask asks for a reply of at most limit tokens; 0 sends no limit. A limit that the server refuses is lowered to the one
// that it names, also where that is what the account can pay for, which is said in a Note. A reply that was cut at its
// limit is asked for again with twice as much, up to most tokens, and what was shown of it is declared void. When
// nothing longer is to be had, the reply that was cut is the result. The usage is that of all replies.
func (m *Maximum) Ask(
	limit, most int, emit func(llm.Delta), ask func(limit int) (r llm.Reply, isCut bool, err error),
) (llm.Reply, error) {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	limit = m.Bound(limit)
	r, isCut, err := ask(limit)
	if lower := m.lower(err, limit); lower > 0 {
		isPoor := llm.KindOf(err) == llm.Spent
		limit = lower
		r, isCut, err = ask(limit)
		switch {
		case isPoor && err == nil && !m.isTold.Swap(true):
			emit(llm.Delta{Note: fmt.Sprintf("the account at %s can pay for a reply of %d tokens only, so no longer "+
				"ones are asked for: raise its credit or its limit", m.Host, lower)})
		case isPoor && llm.KindOf(err) == llm.Spent: // the number was another one
			m.affordable.Store(0)
		}
	}
	for err == nil && isCut {
		m.affordable.CompareAndSwap(int64(limit), 0) // the credit may have been raised meanwhile
		used := cmp.Or(limit, r.Usage.Output)
		longer := m.Bound(min(max(2*used, firstLonger), most))
		if longer <= used {
			break
		}
		emit(llm.Delta{Again: true})
		next, isNextCut, errNext := ask(longer)
		switch {
		case errNext == nil:
			next.Usage = next.Usage.Plus(r.Usage)
			r, isCut, limit = next, isNextCut, longer
		case llm.KindOf(errNext) == "": // cancelled
			return next, errNext
		case !m.Learn(errNext, longer):
			return r, nil
		}
	}
	return r, err
}

// lower returns the limit with which a request can be made that was refused for its limit, or 0.
func (m *Maximum) lower(err error, limit int) int {
	if m.Learn(err, limit) {
		return m.Bound(limit)
	}
	switch llm.KindOf(err) {
	case llm.ContextFull:
		return namedRoom(m.says(err), limit)
	case llm.Spent:
		if most := namedAffordable(m.says(err), limit); most > 0 {
			m.affordable.Store(int64(most))
			return most
		}
	}
	return 0
}

// Bound returns a limit of a reply, or the maximum if the limit is larger. 0, which sends no limit, stays, unless the
// account cannot pay for it.
func (m *Maximum) Bound(limit int) int {
	if most := int(m.tokens.Load()); most > 0 {
		limit = min(limit, most)
	}
	if most := int(m.affordable.Load()); most > 0 && (limit == 0 || limit > most) {
		return most
	}
	return limit
}

// Learn reports whether err refuses the limit of a reply and names a smaller one that would do. The maximum is then
// that one, and the same request can be made once more.
func (m *Maximum) Learn(err error, limit int) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.BadRequest ||
		e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	most := namedMaximum(m.says(e), limit)
	if most > 0 {
		m.tokens.Store(int64(most))
	}
	return most > 0
}

// says returns what an error says, without the name of the server.
func (m *Maximum) says(err error) string { return strings.ReplaceAll(err.Error(), m.Host, "") }

// number finds the numbers in a message, with commas in them or without.
var number = pattern(`\d[\d,]*`)

// minLimit is the smallest limit that is believed to be one. Other small numbers are the ends of ranges.
const minLimit = 256

// numbersIn returns the numbers in a message that may be limits.
func numbersIn(message string) (all []int) {
	for _, word := range number().FindAllString(message, -1) {
		if n, err := strconv.Atoi(strings.ReplaceAll(word, ",", "")); err == nil && n >= minLimit {
			all = append(all, n)
		}
	}
	return all
}

// minRoom is the least room for a reply that is worth asking for.
const minRoom = 2048

// namedRoom returns how many tokens the window has left for a reply, by a message that says that prompt and reply
// together exceed it, or 0. Such a message names the window, the prompt and the limit of the reply, and either no other
// number or their sum.
func namedRoom(message string, limit int) int {
	all := numbersIn(message)
	if !slices.Contains(all, limit) {
		return 0
	}
	for _, prompt := range all {
		for _, window := range all {
			room := window - prompt
			isOther := prompt != limit && window != limit
			if isOther && room >= minRoom && room < limit && (len(all) == 3 || slices.Contains(all, prompt+limit)) {
				return room
			}
		}
	}
	return 0
}

// What servers say of the tokens that an account can pay for, in lower case: OpenRouter's words, and those of others.
//
// https://openrouter.ai/docs/api-reference/errors
var (
	affords  = pattern(`afford(?:able)?\b[^0-9$€£¥]{0,40}(\d[\d,]*)(\.\d)?`)
	suffices = pattern(`(?:only|at most|up to|maximum of|max|covers|allows|leaves|enough for|sufficient for|` +
		`remaining|left)[^0-9$€£¥]{0,20}(\d[\d,]*) +(?:[a-z]+ +)?tokens?\b()`)
	isLeft = pattern(`(\d[\d,]*) +(?:[a-z]+ +)?tokens? +` +
		`(?:(?:is|are|can be) +)?(?:affordable|afforded|left|remaining|available)()`)
	notAfforded = pattern(`(?:not|n't|n’t) +afford`) // what follows is too much
)

// namedAffordable returns how many tokens an account can pay for, by a message that says so, or 0. The message may also
// name what was asked for, which is more.
func namedAffordable(message string, limit int) (most int) {
	message = notAfforded().ReplaceAllString(strings.ToLower(message), "")
	for _, words := range []func() *regexp.Regexp{affords, suffices, isLeft} {
		for _, m := range words().FindAllStringSubmatch(message, -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			isNumber := err == nil && m[2] == "" && n >= minLimit
			if isNumber && (limit == 0 || n < limit) && (most == 0 || n < most) {
				most = n
			}
		}
		if most > 0 {
			break
		}
	}
	return most
}

// namedMaximum returns the largest number below limit in a message about the limit of a reply, or 0. All servers that
// name their maximum quote the limit that they refuse, or a range that begins with 1, and otherwise no number of its
// size.
func namedMaximum(message string, limit int) (most int) {
	lower := strings.ToLower(message)
	if !strings.Contains(lower, "max_tokens") && !strings.Contains(lower, "max_completion_tokens") &&
		!strings.Contains(lower, "max_output_tokens") && !strings.Contains(lower, "output tokens") {
		return 0
	}
	for _, n := range numbersIn(message) {
		if n < limit {
			most = max(most, n)
		}
	}
	return most
}
