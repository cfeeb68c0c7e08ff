package hostile

import "testing"

// State that muster did not make for this user on this machine is not used.
func TestStates(t *testing.T) { runTable(t, "states", 1, recordCommands) }
