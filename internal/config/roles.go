package config

import (
	"slices"
	"strings"

	"muster"
)

// rolesKey is what a file says about roles below: of members (lead, and what the lead calls its teammates) and of the
// kinds of subagents (explore and work).
const rolesKey = "roles"

// Role is what the members of a role, or the subagents of a kind, have in place of what all have. Zero fields say
// nothing.
type Role struct {
	Model, Effort string
	MaxTokens     int
	Fallback      []string
}

// Role returns what is set for a role, over what holds for all.
func (s *Settings) Role(name string) Role {
	var r Role
	if set := s.Roles[muster.RoleKey(name)]; set != nil {
		r = *set
	}
	if len(r.Fallback) == 0 {
		r.Fallback = s.Fallback
	}
	return r
}

// OwnModels returns the models that are named beside the model of all.
func (s *Settings) OwnModels() []string {
	all := slices.Clone(s.Fallback)
	for _, r := range s.Roles {
		if r.Model != "" {
			all = append(all, r.Model)
		}
		all = append(all, r.Fallback...)
	}
	return all
}

func (s *Settings) roleTable(name string) []Setting {
	key := muster.RoleKey(name)
	if s.Roles[key] == nil {
		s.Roles[key] = &Role{}
	}
	r, prefix, of := s.Roles[key], rolesKey+"."+name+".", " of the role "+name
	return []Setting{
		{Name: prefix + "model", to: &r.Model, check: s.checkModel, isModel: true, About: "the model" + of},
		{Name: prefix + "effort", to: &r.Effort, words: efforts, About: "how hard the model" + of + " thinks"},
		{Name: prefix + "max_tokens", to: &r.MaxTokens, About: "how many tokens a reply" + of + " may have"},
		{Name: prefix + "fallback", to: &r.Fallback, separators: ", ", check: s.checkModel, isModel: true,
			About: "models that are asked in place of the model" + of + " while it does not answer"},
	}
}

// isRoles reports whether a key is that of all roles or of one, below which further names stand.
func isRoles(key string) bool {
	return key == rolesKey || strings.HasPrefix(key, rolesKey+".") && strings.Count(key, ".") == 1
}

// addRole adds the setting of a role that a key such as roles.lead.model means to the table, and returns the names of
// all settings of this role.
func (l *loader) addRole(key string) (names []string) {
	parts := strings.Split(key, ".")
	if parts[0] != rolesKey || len(parts) != 3 || muster.RoleKey(parts[1]) == "" {
		return nil
	}
	_, isKnown := l.find(func(s Setting) bool { return s.Name == key })
	for _, s := range l.roleTable(parts[1]) {
		if names = append(names, s.Name); s.Name == key && !isKnown {
			_ = l.set(s, s.text(), FromDefault) // what its field holds is right
			l.table = append(l.table, s)
		}
	}
	return names
}
