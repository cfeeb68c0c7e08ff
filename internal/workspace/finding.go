package workspace

import (
	"path/filepath"
	"slices"
	"strings"

	"muster"
)

// Health says how bad a finding is. The values are part of the output of muster doctor --json.
type Health string

// The values of Health.
const (
	Healthy Health = "ok"
	Note    Health = "note"   // worth to know; nothing is wrong
	Mended  Health = "mended" // Repair has done something about it
	Broken  Health = "broken"
)

// Finding is what a check or a repair says of one thing.
type Finding struct {
	Area   string `json:"what"`
	Health Health `json:"health"`
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"` // what people have to do or to type
}

// Findings are gathered by checks, in the order in which people read them.
type Findings []Finding

// Add adds a finding.
func (f *Findings) Add(area string, health Health, text, fix string) {
	*f = append(*f, Finding{area, health, text, fix})
}

// AddError adds that something is broken by an error.
func (f *Findings) AddError(area string, err error) {
	f.Add(area, Broken, err.Error(), muster.HintOf(err))
}

// IsBroken reports whether any of the findings is Broken.
func (f Findings) IsBroken() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Health == Broken })
}

// repairCommand is what to type so that a finding is repaired.
const repairCommand = "muster doctor --repair"

// thenRepair returns what only the user can do, followed by the repair.
func thenRepair(fix string) string {
	if strings.Contains(fix, repairCommand) {
		return fix
	}
	return fix + ", then: " + repairCommand
}

// Relative returns a path as it is typed from the repository's root.
func (w *Workspace) Relative(path string) string {
	if rel, err := filepath.Rel(w.root, path); err == nil {
		return rel
	}
	return path
}
