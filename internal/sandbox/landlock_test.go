package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/tier"
)

// findLandlocked returns Landlock, also where bubblewrap works.
func findLandlocked(t testing.TB) Method {
	t.Helper()
	m, err := findLandlock(t.Context(), errors.New("bubblewrap is not asked"))
	if err != nil {
		tier.Missing(t, err.Error())
	}
	return m
}

// A rule for a path counts more than one for a directory above it, in whatever order the two are given: what is hidden
// can neither be opened nor listed.
func TestLandlockRulesBelowOthers(t *testing.T) {
	m := findLandlocked(t)
	_, l := find(t)
	base := t.TempDir()
	write(t, base, filepath.Base, "read/a", "read/b", "read/dir/c", "read/hidden/d", "read/hidden/shown/e", "read/write/f", "other/g",
		"masked/h", "masked/i")
	at := func(name string) string { return filepath.Join(base, name) }
	// Links lead to what has its own rules, by whatever name a rule is given.
	check(t, errors.Join(os.Symlink(at("other"), at("read/link")), os.Symlink(at("read"), at("alias"))))
	rules := Rules{{Path: at("read")}, {Path: at("alias/hidden"), Access: Empty}, {Path: at("read/hidden/shown")},
		{Path: at("read/write"), Access: Write}, {Path: at("read/a"), Access: Masked}, {Path: at("missing")},
		{Path: at("masked")}, {Path: at("masked/h"), Access: Masked}, {Path: at("elsewhere"), From: at("other")}}
	command := `cd ` + base + `; for f in read/a read/b read/dir/c read/hidden/d read/hidden/shown/e read/write/f read/link/g other/g elsewhere/g masked/h masked/i; do
echo "$f=$(cat $f 2>/dev/null)"; done
for d in . read read/dir read/hidden read/write read/hidden/shown masked other; do (ls $d >/dev/null) 2>/dev/null && echo listed $d; (echo x > $d/new) 2>/dev/null && echo wrote $d; done
ln read/b read/write/b 2>/dev/null || echo no link; mv read/write/f read/f 2>/dev/null || echo no move; mv read/write/new read/write/old && rm read/write/old && echo moved`
	want := []string{"read/a=", "read/b=b", "read/dir/c=c", "read/hidden/d=", "read/hidden/shown/e=e", "read/write/f=f",
		"read/link/g=", "other/g=", "elsewhere/g=", "masked/h=", "masked/i=i",
		"listed read/dir", "listed read/write", "wrote read/write", "listed read/hidden/shown", "listed masked", "no link", "no move", "moved", ""}
	for range len(rules) {
		if got := run(t, m, l, append(System(), rules...), command); got != strings.Join(want, "\n") {
			t.Fatalf("%v:\n%s", rules, got)
		}
		rules = append(slices.Clone(rules[1:]), rules[0])
	}
	for _, path := range []string{"/", base, "/root"} {
		if got := run(t, m, l, System(), "ls "+path+" 2>&1 || echo refused"); !strings.Contains(got, "refused") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if _, _, err := (Rules{{Path: at("none"), MustExist: true}}).ruleset(); err == nil {
		t.Error("what must exist and does not is no error")
	}
}
