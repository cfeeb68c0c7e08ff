package team

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/compact"
	"muster/internal/teammate"
	"muster/internal/transcript"
	"muster/internal/view"
	"muster/llm"
)

// Window is what fills the context window of a member's model.
type Window = view.Window

// Window returns what fills the window of a member's model, from its records: whether it lives makes no difference.
// known says how many tokens the model with a name takes, and how long its replies may be; 0 is unknown. The error is
// NotFound, with all names, when there is no such member.
func (s Members) Window(
	ctx context.Context, name muster.Name, known func(model string) (window, reply int),
) (Window, error) {
	services := s.t.services()
	m, err := services.Roster(ctx).Get(ctx, name)
	run, errRun := services.Runs().Look(ctx)
	p, errLook := transcript.Look(ctx, services.Store().Log(), name)
	if err := cmp.Or(err, errRun, errLook); err != nil {
		return Window{}, err
	}
	w := Window{Member: name, Role: m.Role, Model: cmp.Or(m.Model, run.Model), Counted: p.Counted}
	site := s.t.site
	site.workspace, site.config.Name = services, services.Name(ctx)
	made := members{site: &site, mcp: site.config.rememberedMCP(ctx, s.t.Root()),
		skills: site.config.skills(services.Paths()), roles: site.config.roleFiles(services.Paths())}
	system, tools := teammate.Prefix(ctx, *made.configOf(m, w.Model, false), p.Messages)
	prefix := []view.WindowPart{{Name: "system prompt", Tokens: compact.PrefixTokens(system, nil)},
		{Name: "tools", Count: len(tools), Tokens: compact.PrefixTokens(nil, tools)}}
	w.Parts = append(prefix, windowParts(p.Messages)...)
	estimate, asked := sumOf(w.Parts), sumOf(prefix)+sumOf(windowParts(p.Messages[:min(p.Asked, len(p.Messages))]))
	var gauge compact.Gauge
	if p.Counted > 0 {
		gauge.Count(p.Counted, asked)
	}
	w.Tokens = gauge.Tokens(estimate)
	// The parts are as large as the provider would count them, as far as its count of the whole tells.
	for i := range w.Parts {
		w.Parts[i].Tokens = w.Parts[i].Tokens * w.Tokens / max(estimate, 1)
	}
	w.Parts[1].Tokens += w.Tokens - sumOf(w.Parts) // what the divisions have left over
	view.SortWindow(w.Parts)
	var reply int
	if w.Window, reply = known(w.Model); w.Window == 0 {
		w.Window, w.Assumed = teammate.UsualWindow, true
	}
	w.Limit = compact.NewBudget(w.Window, min(reply, w.Window/4), sumOf(prefix), 0).Limit
	if p.Shortened.Kind != "" {
		w.Shortened = shortening(p)
	}
	return w, nil
}

func shortening(p transcript.Picture) *view.Shortening {
	before, after := windowParts(p.Before), windowParts(p.After)
	x := &view.Shortening{At: p.Shortened.At, Why: p.Shortened.Text, Before: sumOf(before), After: sumOf(after),
		Dropped: []view.WindowPart{}}
	if p.Shortened.Kind == transcript.KindCleared {
		x.Why = "older results and inputs were cleared"
	}
	for _, part := range before {
		for _, kept := range after {
			if kept.Name == part.Name && kept.Tool == part.Tool {
				part.Count, part.Tokens = part.Count-kept.Count, part.Tokens-kept.Tokens
			}
		}
		if part.Tokens > 0 {
			part.Count = max(part.Count, 0)
			x.Dropped = append(x.Dropped, part)
		}
	}
	slices.SortStableFunc(x.Dropped, func(a, b view.WindowPart) int { return b.Tokens - a.Tokens })
	return x
}

func sumOf(parts []view.WindowPart) (n int) {
	for _, p := range parts {
		n += p.Tokens
	}
	return n
}

// windowParts sorts what stands in messages into parts, each with an estimate of its tokens.
func windowParts(messages []llm.Message) (parts []view.WindowPart) {
	add := func(name, tool string, p llm.Part) {
		i := slices.IndexFunc(parts, func(x view.WindowPart) bool { return x.Name == name && x.Tool == tool })
		if i < 0 {
			i, parts = len(parts), append(parts, view.WindowPart{Name: name, Tool: tool})
		}
		parts[i].Count++
		parts[i].Tokens += compact.PartTokens(llm.Parts{p})
	}
	tools := map[string]string{} // of calls, by id
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Thinking:
				add("thinking", "", p)
			case llm.Call:
				tools[p.ID] = p.Name
				add("own calls", "", p)
			case llm.Image:
				add("images", "", p)
			case llm.Text:
				if m.Role == llm.Assistant {
					add("own words", "", p)
					continue
				}
				for _, text := range splitInstructions(p.Text) {
					add(saidPart(text), "", llm.Text{Text: text})
				}
			case llm.Result:
				whole := llm.Result{ID: p.ID}
				for _, inner := range p.Parts {
					switch inner := inner.(type) {
					case llm.Image:
						add("images", "", inner)
					case llm.Text:
						if part := saidPart(strings.TrimSpace(inner.Text)); part == "project instructions" {
							add(part, "", inner) // of a directory that the call has named
							continue
						}
						whole.Parts = append(whole.Parts, inner)
					}
				}
				add("results", cmp.Or(tools[p.ID], "?"), whole)
			}
		}
	}
	return parts
}

func splitInstructions(text string) []string {
	const end = "</instructions>\n"
	var parts []string
	for saidPart(text) == "project instructions" {
		i := strings.Index(text, end)
		if i < 0 {
			break
		}
		parts, text = append(parts, text[:i+len(end)]), text[i+len(end):]
	}
	return append(parts, text)
}

// saidPart returns the part that a text of the runtime belongs to. The runtime's marks tell: in what others write they
// are escaped.
func saidPart(text string) string {
	for _, x := range [...]struct{ mark, part string }{{"<instructions ", "project instructions"}, {"<mail ", "mail"},
		{"<reminder>", "reminders"}, {"<background-results>", "reminders"}, {"[Conversation compressed]", "summary"}} {
		if strings.HasPrefix(text, x.mark) {
			return x.part
		}
	}
	return "task and facts"
}
