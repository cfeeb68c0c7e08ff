package torture

import (
	"strings"
	"testing"

	"muster/internal/failpoint"
	"muster/internal/testing/faultinject"
)

func TestWrongPoints(t *testing.T) {
	var all []string
	for _, p := range faultinject.Points() {
		all = append(all, p.Name)
	}
	for _, c := range []struct{ without, with, want string }{
		{want: ""},
		{without: "lane.undone", want: "the point lane.undone was never passed"},
		{with: "no.such", want: "the point no.such was passed and is not on the list"},
		{without: "landing.reviewed"},
	} {
		passed := strings.Fields(strings.Replace(strings.Join(all, " "), c.without, "", 1) + " " + c.with)
		if got := strings.Join(wrongPoints(passed), "\n"); got != c.want {
			t.Errorf("without %q, with %q: %q, want %q", c.without, c.with, got, c.want)
		}
	}
}

// TestNeedsFailpoints checks that a build without failpoints runs nothing: it would kill fewer processes than it should.
func TestNeedsFailpoints(t *testing.T) {
	if failpoint.Enabled {
		t.Skip("this build has failpoints")
	}
	if code := Main([]string{"-minutes", "0"}); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
}
