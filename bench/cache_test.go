//go:build linux

package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/llmtest"
)

// The run whose requests are counted: so many tasks, done by so many teammates beside the lead.
const (
	cacheTasks     = 6
	cacheTeammates = 3
)

// The stand-in answers at once, and caches forget with the time. So the requests get the times of a run with a real
// model: a turn takes 40 seconds with its tools, its reply begins after three seconds, the teammates begin when the lead has spawned
// them, and the lead's last turn comes when the teammates are done.
const (
	turnTakes   = 40 * time.Second
	replyBegins = 3 * time.Second
)

// firstReply is how long the stand-in takes for the first reply about a task, so that it shows who waits for it.
const firstReply = time.Second

// cacheWork are the turns of a task as YAML, indented by so much: twelve files are read in one reply, then two more, a
// file is written, a command is run, and the task is completed. n is the task, id its number on the board.
func cacheWork(indent, n, id string) string {
	var reads []string
	for i := range 12 {
		reads = append(reads, fmt.Sprintf(`{read_file: {path: "d00/f00%s%d.go"}}`, n, i%10))
	}
	var b strings.Builder
	for i, do := range []string{strings.Join(reads, ", "), `{grep: {pattern: "file ` + n + `"}}, {read_file: {path: "d00/f000` + n + `.go"}}`,
		`{write_file: {path: "part` + n + `.txt", content: "` + strings.Repeat("What the part does. ", 60) + `"}}`,
		`{bash: {command: "wc part` + n + `.txt; seq 200"}}`, `{complete_task: {task_id: "` + id + `", summary: "Part ` + n + ` is written."}}`} {
		wait := ""
		if i == 0 && id == "${number:id}" {
			wait = fmt.Sprintf("wait: %s, ", firstReply)
		}
		fmt.Fprintf(&b, "%s- {%sdo: [%s]}\n", indent, wait, do)
	}
	return b.String()
}

// cacheScript is a run with teammates, or by one agent alone.
func cacheScript(isAlone bool) string {
	var b strings.Builder
	b.WriteString("speakers:\n  lead:\n    - {do: [{glob: {pattern: \"**\"}}, {read_file: {path: d00/f0000.go}}]}\n    - do:\n")
	for i := range cacheTasks {
		fmt.Fprintf(&b, "        - task_create: {subject: part %d, description: \"%s\"}\n", i+1, strings.Repeat("What is wanted of the part, in some words. ", 15))
	}
	if isAlone {
		for i := range cacheTasks {
			n := fmt.Sprint(i + 1)
			fmt.Fprintf(&b, "    - {do: [{claim_task: {task_id: \"${task:part %s}\"}}]}\n", n)
			b.WriteString(cacheWork("    ", n, "${task:part "+n+"}"))
		}
		return b.String() + "    - say: All parts are written.\n"
	}
	for i := range cacheTeammates {
		fmt.Fprintf(&b, "        - spawn_teammate: {name: t%d, role: coder, prompt: Take the tasks as they come.}\n", i)
	}
	b.WriteString("    - {do: [{wait: {}}], until: All done}\n    - say: All parts are written.\n")
	b.WriteString("  coder:\n    - say: Ready.\nscenes:\n  - cue: '(?m)^Task #(?P<id>\\d+): part (?P<n>\\d+)'\n    who: [coder]\n    turns:\n")
	return b.String() + cacheWork("      ", "${n}", "${number:id}") + "      - say: Done.\n"
}

// cacheWires are the wire formats, with what makes the program speak each of them.
var cacheWires = []struct {
	name, model, env string
	least            []int // the shortest beginnings that its vendors keep, in tokens
}{
	{"Messages", "anthropic/claude-opus-5", "ANTHROPIC", []int{1024, 4096}},
	{"Chat", "moonshot/kimi-k3", "MOONSHOT", []int{1024}}, // a vendor of Chat Completions that knows prompt_cache_key
	{"Responses", "openai-responses/gpt-6-sol", "OPENAI", []int{1024}},
}

// cacheRun runs the program and returns what the vendor's cache would have done for its requests, for each of the
// shortest beginnings that it may keep.
func cacheRun(b *testing.B, wire int, isAlone bool) (all []llmtest.Kept) {
	w, s := newWorld(b, 100), serve(b, cacheScript(isAlone))
	s.keepsBodies = true
	must(b, os.WriteFile(filepath.Join(w.root, "AGENTS.md"), []byte(strings.Repeat("A rule of the project, which all members read.\n", 90)), 0o644))
	w.git("add", ".")
	w.git("commit", "-q", "-m", "rules")
	teammates := cacheTeammates
	if isAlone {
		teammates = 0
	}
	x := cacheWires[wire]
	c := w.command(muster, "run", "--model", x.model, "--check", "true", "--teammates", fmt.Sprint(teammates), "write six parts")
	c.Env = append(c.Env, x.env+"_API_KEY=none", x.env+"_BASE_URL="+s.url)
	if out := w.output(c); !strings.Contains(out, fmt.Sprintf("%d of %[1]d tasks landed", cacheTasks)) {
		b.Fatalf("not all has landed:\n%s", out)
	}
	visits := s.retimed()
	for _, least := range x.least {
		marks, prefixes, sum := llmtest.MarkCache{Minimum: least}, llmtest.PrefixCache{}, llmtest.Kept{}
		for _, v := range visits {
			ask := prefixes.Ask
			if strings.HasSuffix(v.path, "/messages") {
				ask = marks.Ask
			}
			sum = sum.Plus(ask(need(llmtest.NewPrompt(v.path, v.body))(b), v.came, v.came.Add(replyBegins)))
		}
		all = append(all, sum)
	}
	return all
}

// retimed returns all requests in order, at the times that they would have in a run with a real model.
func (s *server) retimed() (all []visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lead, at := s.asked["lead"], time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, v := range lead {
		v.came = at
		all, at = append(all, v), at.Add(turnTakes)
	}
	if len(s.asked) == 1 {
		return all
	}
	end := at
	names := slices.SortedFunc(maps.Keys(s.asked), func(a, b string) int { return s.asked[a][0].came.Compare(s.asked[b][0].came) })
	for _, name := range names {
		at = all[2].came // when the lead has heard that they were spawned, and waits
		if s.asked[name][0].came.Sub(s.asked[names[1]][0].came) > firstReply/2 {
			at = at.Add(replyBegins) // it has let another one ask first
		}
		for _, v := range s.asked[name] {
			if name != "lead" {
				v.came = at
				all, at = append(all, v), at.Add(turnTakes)
			}
		}
		if at.After(end) {
			end = at
		}
	}
	all[len(lead)-1].came = end
	slices.SortStableFunc(all, func(v, u visit) int { return v.came.Compare(u.came) })
	return all
}

// BenchmarkCache is what a vendor's prompt cache keeps of a run, beside one agent that does the same alone. The caches
// are simulated; see llmtest.MarkCache and llmtest.PrefixCache.
func BenchmarkCache(b *testing.B) {
	for i, wire := range cacheWires {
		team, alone := cacheRun(b, i, false), cacheRun(b, i, true)
		for j, k := range team {
			what := fmt.Sprintf("%d tasks by %d teammates, %s, where nothing below %d tokens is kept", cacheTasks, cacheTeammates, wire.name, wire.least[j])
			a := alone[j]
			report(b, fmt.Sprintf("%s-%d-requests", wire.name, j), figure{what: what, unit: "requests", ours: float64(k.Requests), beside: float64(a.Requests), is: "one agent alone"})
			report(b, fmt.Sprintf("%s-%d-sent", wire.name, j), figure{what: "... bytes of prompt", unit: "KB", ours: kb(k.Sent), beside: kb(a.Sent), is: "alone"})
			report(b, fmt.Sprintf("%s-%d-kept", wire.name, j), figure{what: "... of them kept by the cache", unit: "%", ours: share(k.Read, k.Sent), limit: 65, more: true, beside: share(a.Read, a.Sent), is: "alone"})
			report(b, fmt.Sprintf("%s-%d-fresh", wire.name, j), figure{what: "... not kept", unit: "KB", ours: kb(k.Sent - k.Read), beside: kb(a.Sent - a.Read), is: "alone"})
			report(b, fmt.Sprintf("%s-%d-cost", wire.name, j), figure{what: "... what they cost with " + wire.model, unit: "USD", ours: dollars(b, wire.model, k), beside: dollars(b, wire.model, a), is: "alone"})
		}
	}
}

// dollars is what the prompts of a run cost with a model, at four bytes a token.
func dollars(b *testing.B, model string, k llmtest.Kept) float64 {
	provider, name, _ := strings.Cut(model, "/")
	known, _ := catalogue.Lookup(strings.TrimSuffix(provider, "-responses"), name)
	sum, ok := 0.0, true
	for range k.Requests { // the price depends on the size of a request: take that of a usual one
		cost, isKnown := known.Cost(llm.Usage{Input: (k.Sent - k.Read - k.Written - k.Lasting) / k.Requests / 4, CacheRead: k.Read / k.Requests / 4,
			CacheWrite: k.Written / k.Requests / 4, CacheWriteLong: k.Lasting / k.Requests / 4}, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
		sum, ok = sum+cost, ok && isKnown
	}
	if !ok {
		b.Fatalf("the price of %s is not known", model)
	}
	return sum
}

func kb(n int) float64 { return float64(n) / 1024 }

func share(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }
