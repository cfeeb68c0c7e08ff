package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"muster/internal/text"
)

// Settings is what the user has said about the settings of one repository: which of their contents count, and which
// servers and scripts the user has named there. It lies in the user's state directory, where no repository can write.
type Settings struct {
	// Trusted are the contents that count, by the name of the setting or of what else the repository brings.
	Trusted map[string]Content `json:"trusted,omitempty"`
	// Declined is the hash of the contents that the user was asked about and did not trust. They are not asked about
	// again.
	Declined string `json:"declined,omitempty"`
	// Servers are the endpoints and the scripts that the user has named here. Records may name them too. They have no
	// credentials.
	Servers []string `json:"servers,omitempty"`
	// Targets are the branches that the user has named here for the work of teams. A run's record names its branch too,
	// and anybody who can write in the repository can change that record.
	Targets []string `json:"targets,omitempty"`
	// Allowed is what the user lets through here that muster would hold back.
	Allowed []Grant `json:"allowed,omitempty"`
}

// Grant is one thing that the user has allowed.
type Grant struct {
	Kind string  `json:"kind"` // such as Secret
	Name string  `json:"name"` // of a secret, the fingerprint of what looks like one
	At   float64 `json:"at"`
}

// Permission is the kind of the grants of what members asked for: each names a call of a tool.
const Permission = "permission"

// Secret is the kind of the grants that let what looks like a key land.
const Secret = "secret"

// Allows reports whether the user has allowed something.
func (s Settings) Allows(kind, name string) bool {
	return slices.ContainsFunc(s.Allowed, func(g Grant) bool { return g.Kind == kind && g.Name == name })
}

// Allow notes that the user has allowed something. What is allowed already keeps its time.
func (s *Settings) Allow(g Grant) {
	if !s.Allows(g.Kind, g.Name) {
		s.Allowed = append(s.Allowed, g)
	}
}

// Forget takes back what the user has allowed, and reports whether it was allowed.
func (s *Settings) Forget(kind, name string) (was bool) {
	was = s.Allows(kind, name)
	s.Allowed = slices.DeleteFunc(s.Allowed, func(g Grant) bool { return g.Kind == kind && g.Name == name })
	return was
}

// Content is a trusted content.
type Content struct {
	Hash string `json:"hash"`
	// Text is what was trusted, so that a change can be shown. It is cut when it is long: the hash decides.
	Text string `json:"text"`
}

// maxText is how many bytes of a trusted content are kept to show a change of it.
const maxText = 64 << 10

// Trusts reports whether the user trusts this content under this name.
func (s Settings) Trusts(name, text string) bool {
	c, ok := s.Trusted[name]
	return ok && c.Hash == hash(text)
}

// Trust notes that a content is trusted. It replaces an earlier one of the same name.
func (s *Settings) Trust(name, content string) {
	if s.Trusted == nil {
		s.Trusted = map[string]Content{}
	}
	s.Trusted[name] = Content{Hash: hash(content), Text: text.FirstBytes(content, maxText)}
	s.Declined = ""
}

// Decline notes that the user was asked about these contents and did not trust them.
func (s *Settings) Decline(contents map[string]string) { s.Declined = hashAll(contents) }

// HasDeclined reports whether the user was asked about just these contents and did not trust them.
func (s Settings) HasDeclined(contents map[string]string) bool {
	return s.Declined == hashAll(contents)
}

// AddServer notes that the user has named a server or a script here.
func (s *Settings) AddServer(server string) {
	if !slices.Contains(s.Servers, server) {
		s.Servers = append(s.Servers, server)
	}
}

// AddTarget notes that the user has named a branch for the work of a team.
func (s *Settings) AddTarget(branch string) {
	if !slices.Contains(s.Targets, branch) {
		s.Targets = append(s.Targets, branch)
	}
}

// Settings returns what the user has said about the settings of the repository with this common directory. It is the
// zero Settings for a repository that has no mark of this user's. It writes nothing.
func (r *Registry) Settings(common string) (Settings, error) {
	mark, err := r.Look(common)
	if err != nil || mark.Standing != Own {
		return Settings{}, err
	}
	return mark.Record.Settings, nil
}

// ChangeSettings changes what the user has said about the settings of a repository, which is marked for that.
func (r *Registry) ChangeSettings(ctx context.Context, common, root string, change func(*Settings)) error {
	_, err := r.change(ctx, common, root, change)
	return err
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hashAll returns one hash of several contents with their names, in any order.
func hashAll(contents map[string]string) string {
	var all []string
	for name, text := range contents {
		all = append(all, hash(name)+hash(text))
	}
	slices.Sort(all)
	return hash(strings.Join(all, ""))
}
