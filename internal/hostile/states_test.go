package hostile

import (
	"maps"
	"testing"
)

// State that muster did not make for this user on this machine is not used.
func TestStates(t *testing.T) {
	own := map[string]command{}
	for _, commands := range []map[string]command{recordCommands, settingsCommands} {
		maps.Copy(own, commands)
	}
	runTable(t, "states", own)
}
