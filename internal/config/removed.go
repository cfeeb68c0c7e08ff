package config

import "strings"

// removed has the settings that muster no longer has, each with the first version without it. Where one is still set,
// Load reports it as a Value that says so, and it changes nothing: a file for an earlier version stops no run. With a
// level, such as roles.arbiter, all below it is meant.
var removed = []struct{ name, version string }{
	{"arbiter_turns", "v0.1.0"},
	{"landing.check_covered", "v0.1.0"},
	{"roles.arbiter", "v0.1.0"},
}

// noteRemoved notes where a removed setting is set; a later source overrides an earlier one. It is false for the names
// of other settings.
func (l *loader) noteRemoved(name string, source Source) (isRemoved bool) {
	for _, r := range removed {
		if name == r.name || strings.HasPrefix(name, r.name+".") {
			l.sources[r.name] = source
			return true
		}
	}
	return false
}

// removedValues returns the removed settings that are set.
func (l *loader) removedValues() (all []Value) {
	for _, r := range removed {
		if source, isSet := l.sources[r.name]; isSet {
			all = append(all, Value{Name: r.name, Source: source, Removed: r.version,
				Description: "does nothing: it was removed in " + r.version})
		}
	}
	return all
}
