package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
)

// seal is what the signature of a block of thinking says of it.
type seal struct{ Model, Account, Place, Before, Text string }

// seals follow the thinking of a conversation.
type seals struct {
	place  place
	before string   // the signature of the thinking before, "" if there is none
	places []string // before each block of the present message: several replies in a row are one message
}

// Sealer signs the thinking with which a model answers a request, so that CheckMessages takes it back.
type Sealer struct{ request *strictMessages }

// NewSealer returns a Sealer for the reply to a request with this header and body.
func NewSealer(header http.Header, body []byte) *Sealer {
	s := &strictMessages{account: header.Get("X-Api-Key")}
	if err := json.Unmarshal(body, &s.request); err != nil {
		panic(err) // it was checked
	}
	s.seals.place = newPlace(s.request)
	s.messages()
	return &Sealer{s}
}

// Seal returns the signature of the next block of thinking of the reply. Of redacted thinking it is the data, and text
// is "".
func (s *Sealer) Seal(text string) string {
	r := s.request
	x := seal{r.request.Model, r.account, string(r.seals.place), hashOf(r.seals.before), hashOf(text)}
	r.seals.before = x.encode()
	return r.seals.before
}

// encode returns the seal as text.
func (x seal) encode() string {
	data, err := json.Marshal(x)
	if err != nil {
		panic(err) // it holds strings only
	}
	return base64.StdEncoding.EncodeToString(data)
}

// unseal returns the seal that text is, and whether it is one.
func unseal(text string) (x seal, ok bool) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &x)
	}
	return x, err == nil
}

// hashOf returns a short hash.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// sealed checks thinking that comes back.
func (s *strictMessages) sealed(where string, b strictBlock) {
	signature, text := b.Data, ""
	if b.Type == "thinking" {
		signature = b.Signature
		if b.Thinking == nil {
			s.addf("%s.thinking: Field required", where)
			return
		}
		text = *b.Thinking
	}
	x, ok := unseal(signature)
	if !ok || x.Text != hashOf(text) {
		s.addf("%s: Invalid `signature` in `thinking` block", where)
		return
	}
	if x.Model != s.request.Model {
		s.addf("%s: %s reads thinking of %s", where, s.request.Model, x.Model)
	}
	if s.rules.byAccount && x.Account != s.account {
		s.addf("%s: thinking of another account", where)
	}
	// Thinking may be left out from the beginning of the conversation on, and not between other thinking.
	isGap := s.seals.before != "" && x.Before != hashOf(s.seals.before)
	if s.rules.isBound && (isGap || !slices.Contains(s.seals.places, x.Place)) {
		s.addf("%s: Invalid `signature` in `thinking` block. The block is bound to a different conversation", where)
	}
	s.seals.before = signature
}

// place says what stands before a block of thinking: the system prompt, the tools and all blocks, without thinking and
// without marks for the cache.
type place string

// newPlace returns the place at the beginning of the messages.
func newPlace(q messagesRequest) place {
	data, err := json.Marshal([]any{q.System, q.Tools})
	var plain any
	if err != nil || json.Unmarshal(data, &plain) != nil {
		panic(err) // it was JSON
	}
	return place("").after("", withoutMarks(plain))
}

// after returns the place behind what a role has said.
func (p place) after(role string, said any) place {
	data, err := json.Marshal(said)
	if err != nil {
		panic(err) // it was JSON
	}
	return place(hashOf(string(p) + role + string(data)))
}

// withoutMarks removes the marks for the cache from a JSON value.
func withoutMarks(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = withoutMarks(v[i])
		}
	case map[string]any:
		delete(v, "cache_control")
		for name := range v {
			v[name] = withoutMarks(v[name])
		}
	}
	return value
}
