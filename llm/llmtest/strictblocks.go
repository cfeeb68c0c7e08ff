package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// strictBlock is a block of a message of the Messages API.
type strictBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Cache     json.RawMessage `json:"cache_control"`
	Source    struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
}

// blockFields are the fields that a block may have, by its type.
var blockFields = map[string]string{
	"text": "text citations", "image": "source", "tool_use": "id name input",
	"tool_result": "tool_use_id content is_error",
	"thinking":    "thinking signature", "redacted_thinking": "data",
}

// pairs are the calls that wait for their results. The results of a message are the blocks behind it, up to the first
// that is none.
type pairs struct {
	open []string
	ever []string
}

// messages checks the messages: which comes first and last, their blocks, and that each call has its result.
func (s *strictMessages) messages() {
	last := ""
	for i, m := range s.request.Messages {
		where := fmt.Sprintf("messages.%d", i)
		types := map[string][]string{"user": {"text", "image", "tool_result"},
			"assistant": {"text", "tool_use", "thinking", "redacted_thinking"}}[m.Role]
		if types == nil || i == 0 && m.Role != "user" {
			s.addf("%s: the role %q, and the first message must use the \"user\" role", where, m.Role)
		}
		blocks := s.blocks(where, m.Role, m.Content, types...)
		isBefore := len(s.pairs.open) > 0 // calls wait for results
		s.seals.places = []string{string(s.seals.place)}
		for j, b := range blocks {
			s.block(fmt.Sprintf("%s.content.%d", where, j), m.Role, b)
		}
		if m.Role == "assistant" && isBefore {
			s.unanswered(where)
		}
		s.follow(m.Role, blocks)
		last = m.Role
		if isLast := i == len(s.request.Messages)-1; isLast && m.Role == "assistant" && len(blocks) > 0 {
			s.ending(where, blocks[len(blocks)-1])
		}
	}
	switch {
	case len(s.pairs.open) > 0:
		s.unanswered("messages")
	case last == "":
		s.addf("messages: at least one message is required")
	}
	isThinking := s.turn == "" || strings.HasSuffix(s.turn, "thinking")
	if t := s.request.Thinking; t != nil && t.Type == "enabled" && !isThinking {
		s.addf("messages: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "+
			"a final `assistant` message must start with a thinking block", s.turn)
	}
}

// unanswered notes that calls have no results where these must stand.
func (s *strictMessages) unanswered(where string) {
	s.addf("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %v", where, s.pairs.open)
}

// follow notes with what the assistant's turn began. It ends where the user says something that is not a result.
func (s *strictMessages) follow(role string, blocks []strictBlock) {
	isResult := func(b strictBlock) bool { return b.Type == "tool_result" }
	switch {
	case role == "user" && !slices.ContainsFunc(blocks, isResult):
		s.turn = ""
	case role == "assistant" && s.turn == "" && len(blocks) > 0:
		s.turn = blocks[0].Type
	}
}

// ending checks the end of a conversation that the model is to go on with.
func (s *strictMessages) ending(where string, b strictBlock) {
	switch {
	case !s.rules.prefill:
		s.addf("This model does not support assistant message prefill. The conversation must end with a user message.")
	case strings.HasSuffix(b.Type, "thinking"):
		s.addf("%s: The final block in an assistant message cannot be `thinking`.", where)
	case b.Text != strings.TrimRight(b.Text, " \t\r\n"):
		s.addf("%s: final assistant content cannot end with trailing whitespace", where)
	}
}

// blocks reads a list of blocks of these types, or a text. It checks what each block has by itself.
func (s *strictMessages) blocks(where, role string, raw json.RawMessage, types ...string) (out []strictBlock) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" && role != "assistant" {
			s.addf("%s: user messages must have non-empty content", where)
		}
		return []strictBlock{{Type: "text", Text: text}}
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		s.addf("%s: %v", where, err)
	}
	for i, raw := range raws {
		where := fmt.Sprintf("%s.content.%d", where, i)
		var b strictBlock
		_ = json.Unmarshal(raw, &b) // fields says what is wrong
		if !slices.Contains(types, b.Type) {
			s.addf("%s: Input tag %q does not match any of the expected tags", where, b.Type)
			continue
		}
		s.fields(where, raw, &b, "type cache_control "+blockFields[b.Type])
		if s.mark(where, b.Cache); len(b.Cache) > 0 && strings.HasSuffix(b.Type, "thinking") {
			s.addf("%s.cache_control: Extra inputs are not permitted", where)
		}
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				s.addf("%s: text content blocks must contain non-whitespace text", where)
				if len(b.Cache) > 0 {
					s.addf("%s: cache_control cannot be set for empty text blocks", where)
				}
			}
		case "image":
			s.picture(where, b)
		}
		out = append(out, b)
	}
	return out
}

// The forms of ids and of names in calls.
var (
	callID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	callName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// block checks what a block of a message has to do with those before it.
func (s *strictMessages) block(where, role string, b strictBlock) {
	if b.Type != "tool_result" && role == "user" && len(s.pairs.open) > 0 {
		s.unanswered(where)
		s.pairs.open = nil
	}
	switch b.Type {
	case "thinking", "redacted_thinking":
		s.sealed(where, b)
		return // it is no part of the place of what follows
	case "tool_use":
		var input map[string]any
		if err := json.Unmarshal(b.Input, &input); err != nil || input == nil {
			s.addf("%s.tool_use.input: Input should be a valid dictionary", where)
		}
		if !callID.MatchString(b.ID) || !callName.MatchString(b.Name) {
			s.addf("%s.tool_use: the id %q or the name %q", where, b.ID, b.Name)
		}
		if slices.Contains(s.pairs.ever, b.ID) {
			s.addf("%s: `tool_use` ids must be unique", where)
		}
		s.pairs.open, s.pairs.ever = append(s.pairs.open, b.ID), append(s.pairs.ever, b.ID)
	case "tool_result":
		s.result(where, b)
	}
	b.Cache = nil
	s.seals.place = s.seals.place.after(role, b)
	s.seals.places = append(s.seals.places, string(s.seals.place))
}

// result checks a result.
func (s *strictMessages) result(where string, b strictBlock) {
	at := slices.Index(s.pairs.open, b.ToolUseID)
	if at < 0 {
		s.addf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s", where, b.ToolUseID)
	} else {
		s.pairs.open = slices.Delete(s.pairs.open, at, at+1)
	}
	var parts []strictBlock
	if len(b.Content) > 0 {
		parts = s.blocks(where, "", b.Content, "text", "image")
	}
	if b.IsError && len(parts) == 0 {
		s.addf("%s.tool_result: content cannot be empty if `is_error` is true", where)
	}
	if b.IsError && slices.ContainsFunc(parts, func(b strictBlock) bool { return b.Type != "text" }) {
		s.addf("%s.tool_result: all content must be type `text` if `is_error` is true", where)
	}
}

// maxPicture is how long the base64 of an image may be.
const maxPicture = 5 << 20

// picture checks an image.
func (s *strictMessages) picture(where string, b strictBlock) {
	data, err := base64.StdEncoding.DecodeString(b.Source.Data)
	switch media := http.DetectContentType(data); {
	case b.Source.Type != "base64" || err != nil || len(data) == 0:
		s.addf("%s.image.source: %v", where, err)
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Source.Media):
		s.addf("%s.image.source.base64.media_type: %s", where, b.Source.Media)
	case media != b.Source.Media:
		s.addf("%s: Image does not match the provided media type %s", where, b.Source.Media)
	case len(b.Source.Data) > maxPicture:
		s.addf("%s.image.source.base64: image exceeds 5 MB maximum: %d bytes", where, len(b.Source.Data))
	}
}
