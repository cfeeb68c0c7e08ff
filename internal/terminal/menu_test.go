package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/tmuxtest"
)

// menuOf returns the rows below the input.
func menuOf(k *keyboard) []string {
	rows := strings.Split(tmuxtest.Unframed(k.View().Content), "\n")
	at := slices.IndexFunc(rows, func(r string) bool { return strings.HasPrefix(r, "> ") })
	return rows[at+1:]
}

func TestMenu(t *testing.T) {
	k := newKeyboard(Options{Complete: completeNames})
	for _, c := range []struct{ keys, text, menu string }{
		{"/", "/", "* /print N  prints lines|  /stream   streams"},
		{"<down>", "/", "  /print N  prints lines|* /stream   streams"},
		{"<down>", "/", "* /print N  prints lines|  /stream   streams"},
		{"p", "/p", "* /print N  prints lines"},
		{"<enter>", "/print ", "  5|  50"}, // it needs more, and that is offered
		{"<esc>", "/print ", ""},
		{"5", "/print 5", ""}, // it stays closed
		{"<ctrl+w><ctrl+w>", "", ""},
		{"/print ", "/print ", "  5|  50"},
		{"<down><tab>", "/print 5 ", ""},
		{"<ctrl+c>see @", "see @", "* dir/file0|  dir/file1|  dir/file2|  dir/file3|  dir/file4|  dir/file5|  dir/file6|  dir/file7|  7 more"},
		{"<up>", "see @", "  dir/file4|  dir/file5|  dir/file6|  dir/file7|  dir/file8|  dir/file9|  dir/file10|* dir/file11|  7 more"},
		{"<tab>.", "see @dir/file11 .", ""},
	} {
		k.press(c.keys)
		if got := strings.Join(menuOf(k), "|"); k.input.Value() != c.text || got != c.menu {
			t.Errorf("after %s: %q with the menu\n%s, want %q with\n%s", c.keys, k.input.Value(), got, c.text, c.menu)
		}
	}
	k.press("<ctrl+c>/s<enter>/print 5<enter>") // a whole command is entered at once
	if got, want := fmt.Sprint(k.events), fmt.Sprint([]Event{Line{Text: "/stream"}, Line{Text: "/print 5"}}); got != want {
		t.Errorf("entered %v, want %v", got, want)
	}
	k.press("tell al<tab>") // what all choices have in common, and then the menu
	if got := k.input.Value(); got != "tell ali" || k.isMenuOpen() {
		t.Errorf("after the first Tab: %q, menu %v", got, k.isMenuOpen())
	}
	if k.press("<tab>"); tmuxtest.Unframed(k.View().Content) != "> tell ali\n* alice\n  alina" {
		t.Errorf("after the second Tab: %q", k.View().Content)
	}
}

// What the user has selected stays selected when the caller has found more.
func TestMenuIsAskedAgain(t *testing.T) {
	found := []string{"@b", "@c"}
	k := newKeyboard(Options{Complete: func(text string, _ int, _ bool) (m Menu) {
		for _, f := range found {
			if text == "@" {
				m.Choices = append(m.Choices, Choice{Text: f, Label: f})
			}
		}
		return m
	}})
	k.press("@<down>")
	found = []string{"@a", "@b", "@c"}
	k.Update(menuMsg{})
	if got := strings.Join(menuOf(k), "|"); got != "  @a|  @b|* @c" {
		t.Errorf("%q", got)
	}
}
