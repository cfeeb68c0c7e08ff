package config

import (
	"strings"
	"testing"
)

// A section is returned for each file, the user's first, with the places of what is in it.
func TestSectionsKeepTheirPlaces(t *testing.T) {
	o := place(t, "check: x\nhooks:\n  Stop:\n    a: one\nmcp_servers:\n", "hooks:\n  Stop: {a: 1}\nteammates: 3\n")
	o.Trusts = nil
	s, _, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	found := s.SectionsNamed("hooks")
	if len(found) != 2 || !found[0].IsTrusted() || found[1].IsTrusted() || len(s.Sections) != 2 {
		t.Fatalf("found %+v", s.Sections)
	}
	type value struct {
		A int `yaml:"a"`
	}
	var v value
	for i, want := range []string{"", "muster.yaml:4:8: "} {
		all, err := found[i].Entries()
		if err != nil || len(all) != 1 || all[0].Name != "Stop" {
			t.Fatalf("entries of %s: %v, %v", found[i].File, all, err)
		}
		err = found[i].Decode(all[0].Value, &v)
		if err != nil != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("decoding that of %s: %v, want %q", found[i].File, err, want)
		}
	}
	if v.A != 1 {
		t.Errorf("decoded %d, want 1", v.A)
	}
	if got := found[1].Errorf(found[1].Node, "no").Error(); got != "muster.yaml:3:3: no" {
		t.Errorf("the place of a section is %q", got)
	}
}

// What a few lines of a section could make large is refused with its place.
func TestSectionsHaveNoAliases(t *testing.T) {
	for text, want := range map[string]string{
		"hooks:\n  A: &x [1, 1]\n  B: [*x, *x]\n": "muster.yaml:3:7: hooks may not have anchors and aliases",
		"hooks: &x\n  A: 1\n":                     "muster.yaml:1:8: hooks may not have anchors and aliases",
		"hooks: " + strings.Repeat("[", 100):      "lie deeper in each other",
		"hoks:\n  A: 1\n":                         `there is no setting "hoks" (did you mean hooks?)`,
		"hooks: 3\n":                              "",
	} {
		s, _, err := Load(place(t, text, ""))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
			continue
		}
		if _, err := s.Sections[0].Entries(); err == nil || !strings.HasPrefix(err.Error(), "muster.yaml:1:8: ") {
			t.Errorf("%q has entries: %v", text, err)
		}
	}
}
