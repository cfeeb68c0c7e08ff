package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
)

// Window is what fills the context window of a member's model. Its JSON is what programs read, so the names of its
// fields are a format.
type Window struct {
	Member muster.Name `json:"member"`
	Role   string      `json:"role"`
	Model  string      `json:"model"`
	// Tokens is the size of the next request: what the provider has counted of the last one and its reply, which is
	// Counted, and an estimate of what has come since. Counted is 0 where it has counted nothing yet.
	Tokens  int `json:"tokens"`
	Counted int `json:"counted"`
	// Window is how many tokens the model takes, and Limit from how many on a summary replaces older messages. Assumed
	// says that nothing is known of the model.
	Window  int  `json:"window"`
	Limit   int  `json:"limit"`
	Assumed bool `json:"assumed,omitempty"`

	Parts     []WindowPart `json:"parts"`
	Shortened *Shortening  `json:"shortened"` // the last time; nil: never
}

// WindowPart is one part of a window. The tokens of all parts add up to those of the window.
type WindowPart struct {
	Name   string `json:"part"`
	Tool   string `json:"tool,omitempty"` // of results
	Count  int    `json:"count"`
	Tokens int    `json:"tokens"`
}

// Shortening is what was left out when a conversation was made shorter.
type Shortening struct {
	At      float64      `json:"at"`
	Why     string       `json:"why"`
	Before  int          `json:"before"` // tokens, estimated
	After   int          `json:"after"`
	Dropped []WindowPart `json:"dropped"` // the largest first
}

func (p WindowPart) title() string {
	if p.Tool != "" {
		return p.Name + " of " + p.Tool
	}
	return p.Name
}

// Draw returns the window: its size, its parts with their shares, and what was left out last.
func (w Window) Draw(s Screen, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s   %s\n", s.Who(string(w.Member), text.OneLine(string(w.Member))), text.OneLine(w.Role),
		cmp.Or(text.OneLine(w.Model), "no model yet"))
	assumed := ""
	if w.Assumed {
		assumed = " that are assumed"
	}
	fmt.Fprintf(&b, "%s of %s tokens%s, %s; summarised from %s on\n\n", tokens(float64(w.Tokens)),
		tokens(float64(w.Window)), assumed, percent(w.Tokens, w.Window), tokens(float64(w.Limit)))
	t := Table{Titles: []string{"PART", ">COUNT", ">TOKENS", ">SHARE", ""}, Wide: 0}
	for _, p := range w.Parts {
		count := ""
		if p.Count > 0 {
			count = fmt.Sprint(p.Count)
		}
		t.Row(p.title(), count, tokens(float64(p.Tokens)), percent(p.Tokens, w.Tokens), bar(p.Tokens, w.Tokens))
	}
	b.WriteString(t.Draw(s))
	counted := "no reply has come yet: all of this is estimated"
	if w.Counted > 0 {
		counted = fmt.Sprintf("the provider counted %s in the last request and its reply; the parts are estimated",
			tokens(float64(w.Counted)))
	}
	b.WriteString("\n" + s.In(Faint, counted) + "\n")
	if x := w.Shortened; x != nil {
		fmt.Fprintf(&b, "%s: %s before, %s after\n", Because("made shorter at "+Clock(muster.Time(x.At), now),
			text.OneLine(x.Why)), tokens(float64(x.Before)), tokens(float64(x.After)))
		if len(x.Dropped) > 0 {
			fmt.Fprintf(&b, "left out: %s\n", droppedText(x.Dropped))
		}
	}
	return b.String()
}

// maxDropped is how many parts of what was left out are named.
const maxDropped = 6

// droppedText names what was left out, the largest parts first.
func droppedText(parts []WindowPart) string {
	var names []string
	for _, p := range parts[:min(len(parts), maxDropped)] {
		names = append(names, p.title()+" "+tokens(float64(p.Tokens)))
	}
	if rest := parts[len(names):]; len(rest) > 0 {
		names = append(names, text.Count(len(rest), "smaller part"))
	}
	return strings.Join(names, ", ")
}

// percent returns a share. Whatever is there at all has at least "<1%".
func percent(n, all int) string {
	share := 100 * float64(n) / float64(max(all, 1))
	if n > 0 && share < 1 {
		return "<1%"
	}
	return fmt.Sprintf("%.0f%%", share)
}

// bar draws a share with a sign for each five percent.
func bar(n, all int) string {
	return strings.Repeat("=", int(math.Round(20*float64(n)/float64(max(all, 1)))))
}

// windowOrder is the order of the parts: that of a request, and then those of the conversation.
var windowOrder = []string{"system prompt", "tools", "project instructions", "task and facts", "summary", "mail",
	"reminders", "own words", "own calls", "thinking", "results", "images"}

// SortWindow brings the parts into the order in which they are shown: as in a request, the results with the most first.
func SortWindow(parts []WindowPart) {
	slices.SortStableFunc(parts, func(p, q WindowPart) int {
		return cmp.Or(slices.Index(windowOrder, p.Name)-slices.Index(windowOrder, q.Name), q.Tokens-p.Tokens,
			strings.Compare(p.Tool, q.Tool))
	})
}
