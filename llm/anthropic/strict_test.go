package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"muster/internal/compact"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/llmtest"
	"muster/loop"
)

// talk is a random conversation with a server that checks each request as the vendor does.
type talk struct {
	*rand.Rand
	model, key, system string // whom the next request goes to, and what it begins with
	memory             *loop.Memory
	problems           []string
	requests, thoughts int // thoughts are the blocks of thinking that came back to the server
	owed               map[string]bool
}

// talkers are the models that conversations change between: each style of thinking, and a model that is not known.
var talkers = []string{"claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5",
	"claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-haiku-4-5", "some-model"}

// pictures begin as images do, and some say that they are of another type.
var pictures = []llm.Image{{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n....")},
	{Media: "image/png", Data: []byte("\xff\xd8\xff\xe0....")}, {Media: "image/gif", Data: []byte("GIF89a....")},
	{Media: "image/webp", Data: []byte("RIFF....WEBPVP8 ")}, {Media: "image/png"}, {Media: "image/bmp", Data: []byte("BM....")}}

// RoundTrip checks a request and answers it.
func (k *talk) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	k.requests++
	k.thoughts += bytes.Count(body, []byte(`"signature":`)) + bytes.Count(body, []byte(`"redacted_thinking"`))
	for _, p := range llmtest.CheckMessages(r.Header, body) {
		k.problems = append(k.problems, fmt.Sprintf("%s: %s\n%.4000s", k.model, p, body))
	}
	for signature := range k.owed {
		if !bytes.Contains(body, []byte(signature)) {
			k.problems = append(k.problems, fmt.Sprintf("%s: a turn goes on without its thinking\n%.4000s", k.model, body))
		}
	}
	answer := k.reply(r.Header, body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// pick returns one of the words.
func (k *talk) pick(words ...string) string { return words[k.IntN(len(words))] }

// reply returns the stream of a random reply. Thinking comes first, and in some styles once more before the calls.
func (k *talk) reply(header http.Header, body []byte) string {
	var blocks [][]string
	k.owed = map[string]bool{}
	sealer := sync.OnceValue(func() *llmtest.Sealer { return llmtest.NewSealer(header, body) })
	stop := k.pick("end_turn", "tool_use", "tool_use", "tool_use", "max_tokens", "refusal", "pause_turn")
	think := func() {
		text, sealed := k.pick("hm", "", "<so>"), ""
		if k.IntN(5) == 0 {
			sealed = sealer().Seal("")
			blocks = append(blocks, []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":`+
				`{"type":"redacted_thinking","data":%q}}`, len(blocks), sealed),
				fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, len(blocks))})
		} else {
			sealed = sealer().Seal(text)
			blocks = append(blocks, thinking(len(blocks), sealed, text))
		}
		if stop != "max_tokens" { // such a reply may be asked for again
			k.owed[sealed] = true
		}
	}
	canThink := bytes.Contains(body, []byte(`"thinking":{`)) && !bytes.Contains(body, []byte(`"type":"disabled"`))
	if canThink && k.IntN(4) > 0 || bytes.Contains(body, []byte(`"type":"enabled"`)) {
		for range 1 + k.IntN(2) {
			think()
		}
	}
	if said := k.pick("", "So.", "\n\n", "So. \n"); said != "" {
		blocks = append(blocks, text(len(blocks), said))
	}
	if canThink && k.IntN(4) == 0 && len(blocks) > 0 {
		think()
	}
	for range k.IntN(4) {
		id := fmt.Sprintf("toolu_%d_%d", k.requests, len(blocks))
		blocks = append(blocks, call(len(blocks), id, "look", k.pick("", "{}", `{"a":"<b>"}`)))
		if stop != "tool_use" && stop != "max_tokens" {
			break
		}
	}
	return turn(stop, blocks...)
}

// open returns the model that is asked now.
func (k *talk) open() llm.Model {
	known, _ := catalogue.Lookup("anthropic", k.model)
	o := anthropic.Options{Model: k.model, Known: known, Key: k.key, Client: &http.Client{Transport: k},
		Effort: k.pick("", "", "", "minimal", "low", "max"), MaxTokens: []int{0, 500, 4096, 1 << 20}[k.IntN(4)]}
	if k.IntN(4) == 0 {
		o.Extra = map[string]json.RawMessage{"temperature": json.RawMessage("0.2")}
	}
	if k.model == "some-model" {
		o.Effort, o.MaxTokens = "", min(o.MaxTokens, 4096)
	}
	return anthropic.New(o)
}

// parts returns what the user says, or what is in a result: maybe nothing.
func (k *talk) parts() (out []llm.Part) {
	for range k.IntN(3) {
		out = append(out, []llm.Part{llm.Text{Text: strings.Repeat("news ", 1+k.IntN(2)*100)}, llm.Text{}, pictures[k.IntN(len(pictures))]}[k.IntN(3)])
	}
	return out
}

// summarize makes the conversation shorter, as members do: a summary takes the place of its beginning, or older results
// and inputs are cut.
func (k *talk) summarize(t *testing.T) {
	messages := k.memory.Messages()
	changes, _ := compact.Rules{Kept: k.IntN(300)}.Clear(messages)
	short := compact.Apply(messages, changes)
	if k.IntN(2) == 0 {
		tail, _ := compact.Tail(messages, k.IntN(1500))
		short = compact.Behind([]string{"A summary."}, tail)
	}
	require.NoError(t, k.memory.Replace(t.Context(), short))
	k.owed = nil
}

// request is what the loop would send: the words that stand before the messages may change, as they do when another
// version of the program goes on.
func (k *talk) request(t *testing.T) llm.Request {
	r := require.Value(k.memory.Request(t.Context()))(t)
	r.System, r.CacheKey, r.CacheLong = []string{"You help.", k.system}, "a@b", k.IntN(2) == 0
	r.Tools = []llm.Spec{{Name: "look"}, {Name: "find", Schema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`)}}
	return r
}

// run has the conversation.
func (k *talk) run(t *testing.T) {
	k.memory = loop.NewMemory(llm.Request{})
	k.memory.Say(llm.Text{Text: "Do it."})
	model, wasPaused := k.open(), false
	for range 3 + k.IntN(8) {
		change := func(to *string, words ...string) {
			*to = k.pick(words...)
			model, k.owed = k.open(), nil
		}
		switch k.IntN(12) {
		case 0:
			change(&k.model, talkers...)
		case 1:
			change(&k.key, "one", "two")
		case 2:
			change(&k.system, "In French.", "In German.")
		case 3:
			k.summarize(t)
		}
		reply := require.Value(model.Reply(t.Context(), k.request(t), nil))(t)
		// What is thought behind the adapter's own "Go on." does not stand behind it in the history.
		if reply.Stop != llm.StopTools || wasPaused {
			k.owed = nil
		}
		wasPaused = reply.Stop == llm.StopPaused
		require.NoError(t, k.memory.Append(t.Context(), reply))
		for _, c := range reply.Message.Calls() {
			require.NoError(t, k.memory.Answer(t.Context(), llm.Result{ID: c.ID, IsError: k.IntN(3) == 0, Parts: k.parts()}))
		}
		if reply.Stop != llm.StopPaused {
			k.memory.Say(k.parts()...)
		}
		if reply.Stop != llm.StopTools && reply.Stop != llm.StopPaused {
			k.memory.Say(llm.Text{Text: "Go on."})
		}
	}
}

// No request of a random conversation is one that the vendor refuses, and thinking goes back where it holds.
func TestStrictVendor(t *testing.T) {
	talked := tier.Amount(100, 1000)
	requests, thoughts, violations := 0, 0, 0
	for seed := range uint64(talked) {
		k := &talk{Rand: rand.New(rand.NewPCG(seed, 1)), key: "one", system: "In French."}
		k.model = k.pick(talkers...)
		k.run(t)
		requests, thoughts = requests+k.requests, thoughts+k.thoughts
		if violations += len(k.problems); len(k.problems) > 0 && violations < 10 {
			t.Errorf("seed %d: %s", seed, k.problems[0])
		}
	}
	t.Logf("%d conversations, %d requests, %d blocks of thinking sent back, %d violations", talked, requests, thoughts,
		violations)
	if requests < 3*talked || thoughts < talked || violations > 0 {
		t.Errorf("%d violations in %d requests with %d blocks of thinking", violations, requests, thoughts)
	}
}
