package landing_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
)

// A landing without its check runs no git whose answer is known: each costs milliseconds, and in a large repository those
// that read the index or the files cost much more.
func TestTheGitsOfALanding(t *testing.T) {
	w := newWorld(t, "", map[string]string{"a": "a\n"})
	first, _ := w.task("First", "alice", map[string]string{"b": "b\n"})
	w.lands(first) // what it makes is known from then on
	second, _ := w.task("Second", "alice", map[string]string{"c": "c\n"})
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	oddGit(t, "*", 0, `printf '%s\n' "$*" >> `+log)
	v, err := w.try(second)
	if err != nil || v.Task.Landed == nil {
		t.Fatalf("it did not land: %+v, %v", v, err)
	}
	var ran []string
	for line := range strings.Lines(gittest.Read(t, dir, "log")) {
		ran = append(ran, regexp.MustCompile(`--no-pager (--bare )?(\S+)`).FindStringSubmatch(line)[2])
	}
	// Each that could run a driver is preceded by a look at the config. The three before the last two read what is looked
	// at for secrets.
	want := strings.Fields("config ls-files diff-index check-attr config add diff-index fast-import " +
		"pack-objects update-ref config merge-tree diff-tree cat-file cat-file pack-objects update-ref")
	if !slices.Equal(ran, want) {
		t.Errorf("a landing ran\n%s, want\n%s", strings.Join(ran, " "), strings.Join(want, " "))
	}
}
