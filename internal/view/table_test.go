package view

import (
	"strings"
	"testing"

	"muster/internal/text"
)

// Long cells of wrapping columns go on below themselves, and no line is wider than the terminal.
func TestTableWraps(t *testing.T) {
	table := Table{Titles: []string{"NAME", "VALUE", "ABOUT"}, Wraps: []int{1, 2}}
	table.Row("check", "go test ./... && go vet ./...", "what is run before")
	table.Row("hosts", "a.example,b.example,c.example", "-")
	for width, want := range map[int]string{
		0: "NAME   VALUE                          ABOUT\n" +
			"check  go test ./... && go vet ./...  what is run before\n" +
			"hosts  a.example,b.example,c.example  -\n",
		40: "NAME   VALUE            ABOUT\n" +
			"check  go test ./...    what is run\n" +
			"       && go vet ./...  before\n" +
			"hosts  a.example,b.exa  -\n" +
			"       mple,c.example\n",
	} {
		got := table.Draw(Screen{Width: width})
		if got != want {
			t.Errorf("at %d:\n%s\nwant\n%s", width, got, want)
		}
		for line := range strings.Lines(got) {
			if width > 0 && text.Columns(line) > width {
				t.Errorf("at %d: %q", width, line)
			}
		}
	}
}

// The columns that matter least are left out where the table does not fit otherwise, and no more than needed.
func TestTableLeavesOut(t *testing.T) {
	table := Table{Titles: []string{">#", "TASK", "COMMIT", ">TRIES", ">TIME"}, Wide: 1, Least: []int{3, 2}}
	table.Row(1, "a subject of some length", "1234567", 2, "12.5s")
	table.Row("", "", "", "", "12.5s")
	for width, want := range map[int]string{
		60: "#  TASK                      COMMIT   TRIES   TIME\n" +
			"1  a subject of some length  1234567      2  12.5s\n" +
			"                                             12.5s\n",
		42: "#  TASK              COMMIT   TRIES   TIME\n" +
			"1  a subject of...   1234567      2  12.5s\n" +
			"                                     12.5s\n",
		36: "#  TASK               COMMIT    TIME\n" +
			"1  a subject of s...  1234567  12.5s\n" +
			"                               12.5s\n",
		24: "#  TASK             TIME\n" +
			"1  a subject o...  12.5s\n" +
			"                   12.5s\n",
	} {
		if got := table.Draw(Screen{Width: width + 1}); got != want {
			t.Errorf("at %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
