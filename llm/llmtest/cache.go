package llmtest

import (
	"crypto/sha256"
	"strings"
	"time"
)

// bytesOfToken is how many bytes count as a token here.
const bytesOfToken = 4

// Kept is what a vendor's cache has done for a request, or for several, in bytes of the prompt.
type Kept struct {
	Requests         int
	Sent             int // all
	Read             int // of Sent, found in the cache
	Written, Lasting int // of Sent, written to the cache for some minutes, and for an hour
}

// Plus returns the sum of k and l.
func (k Kept) Plus(l Kept) Kept {
	return Kept{k.Requests + l.Requests, k.Sent + l.Sent, k.Read + l.Read, k.Written + l.Written, k.Lasting + l.Lasting}
}

// MarkCache stands in for the cache of the Messages API. It keeps the beginnings of requests that end at a mark, and
// finds one at a mark of a later request or up to 19 pieces before it. An entry is there when the reply to its request
// has begun, and lives for five minutes or an hour after it was used last. What is shorter than Minimum is not kept.
//
// Where the vendor says nothing this takes the worse case: only the entry that is found, and those at marks before it,
// are used and live on.
type MarkCache struct {
	Minimum int // tokens; the vendor's minimum depends on the model: 1,024 to 4,096
	entries map[[sha256.Size]byte]*markEntry
}

// markEntry is a beginning that is kept.
type markEntry struct {
	ready, used time.Time
	life        time.Duration
}

// lives reports whether the entry can be found at a moment.
func (e *markEntry) lives(at time.Time) bool { return !at.Before(e.ready) && at.Sub(e.used) <= e.life }

// lookback is at how many pieces the vendor looks for an entry, the marked one included.
const lookback = 20

// Ask returns what the cache does for a request that comes at a moment and whose reply begins at another. Requests come
// in the order of their moments.
func (c *MarkCache) Ask(p Prompt, came, replied time.Time) Kept {
	if c.entries == nil {
		c.entries = map[[sha256.Size]byte]*markEntry{}
	}
	ends, keys := make([]int, len(p.Pieces)), make([][sha256.Size]byte, len(p.Pieces))
	sum := sha256.Sum256([]byte(p.Model))
	size := 0
	for i, piece := range p.Pieces {
		size += len(piece.Text)
		sum = sha256.Sum256(append(sum[:], piece.Text...))
		ends[i], keys[i] = size, sum
	}
	k, found := Kept{Requests: 1, Sent: size}, -1
	for i, piece := range p.Pieces {
		for at := i; piece.Mark != "" && at > max(found, i-lookback); at-- {
			if e := c.entries[keys[at]]; e != nil && e.lives(came) {
				k.Read, found = ends[at], at
				e.used = came
			}
		}
	}
	written := k.Read
	for i, piece := range p.Pieces {
		if piece.Mark == "" || i <= found || ends[i] < c.Minimum*bytesOfToken {
			continue
		}
		e := &markEntry{ready: replied, used: replied, life: 5 * time.Minute}
		if piece.Mark == "1h" {
			e.life = time.Hour
			k.Lasting += ends[i] - written
		} else {
			k.Written += ends[i] - written
		}
		c.entries[keys[i]], written = e, ends[i]
	}
	return k
}

// PrefixCache stands in for the cache of OpenAI. Without being asked it keeps each prompt of at least 1,024 tokens, and
// finds as much of the beginning of a later one as is the same, in steps of 128 tokens. Requests with another key, or
// another model, go to another machine, which has kept nothing of this one. A prompt lives for five minutes after it
// was used last: the vendor says five to ten.
type PrefixCache struct {
	prompts map[[2]string][]*keptPrompt
}

// keptPrompt is a prompt that is kept.
type keptPrompt struct {
	text        string
	ready, used time.Time
}

// The sizes of what the vendor keeps, in tokens.
const (
	leastPrefix = 1024
	prefixStep  = 128
)

// Ask returns what the cache does for a request; see MarkCache.Ask.
func (c *PrefixCache) Ask(p Prompt, came, replied time.Time) Kept {
	if c.prompts == nil {
		c.prompts = map[[2]string][]*keptPrompt{}
	}
	text, machine := p.Text(), [2]string{p.Model, p.Key}
	k := Kept{Requests: 1, Sent: len(text)}
	var best *keptPrompt
	for _, old := range c.prompts[machine] {
		if came.Before(old.ready) || came.Sub(old.used) > 5*time.Minute {
			continue
		}
		tokens := sharedPrefix(old.text, text) / bytesOfToken
		if n := (tokens - tokens%prefixStep) * bytesOfToken; tokens >= leastPrefix && n > k.Read {
			k.Read, best = n, old
		}
	}
	if best != nil {
		best.used = came
	}
	if len(text) >= leastPrefix*bytesOfToken {
		k.Written = k.Sent - k.Read // some models have a price for it
		c.prompts[machine] = append(c.prompts[machine], &keptPrompt{text, replied, replied})
	}
	return k
}

// sharedPrefix returns with how many bytes both texts begin.
func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	if strings.HasPrefix(b, a[:n]) {
		return n
	}
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
