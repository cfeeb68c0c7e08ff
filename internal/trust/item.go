package trust

// Item is one thing that a repository brings and that counts only when the user trusts it.
type Item struct {
	// Name is stable, such as "check", "hooks.PreToolUse" or "mcp_servers.github". In one file no two items share one.
	Name string `json:"name"`
	// File is where the item stands, as people read it: "muster.yaml" or ".claude/settings.json".
	File string `json:"file"`
	// Text is the whole content in a canonical form. It is what is hashed, compared and shown.
	Text string `json:"value"`
	// Now are lines for people: what it concerns at this moment. They are no part of what is trusted.
	Now string `json:"now,omitempty"`
}

// The files whose items are remembered by their names alone.
const (
	settingsFile = "muster.yaml"
	GitConfig    = "the repository's git config"
)

// Key returns the name under which the user's trust in the item is remembered.
func (i Item) Key() string {
	if i.File == settingsFile || i.File == GitConfig {
		return i.Name
	}
	return i.File + ": " + i.Name
}

// TrustsItem reports whether the user trusts an item with just this content.
func (s Settings) TrustsItem(i Item) bool { return s.Trusts(i.Key(), i.Text) }
