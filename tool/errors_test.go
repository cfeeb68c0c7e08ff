package tool_test

import (
	"errors"
	"fmt"
	"testing"

	"muster"
	"muster/tool"
)

func TestClassify(t *testing.T) {
	held := muster.Errorf(muster.Held, "bob has it")
	for _, c := range []struct {
		name  string
		err   error
		fatal bool
	}{
		{"nothing", nil, false},
		{"the model can act on it", fmt.Errorf("claim: %w", held), false},
		{"the engine is away", muster.Errorf(muster.Unavailable, "no disk"), true},
		{"anything else", errors.New("broken pipe"), true},
		{"marked already", tool.Fatal(held), true},
	} {
		if got := tool.Classify(c.err); tool.IsFatal(got) != c.fatal || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
