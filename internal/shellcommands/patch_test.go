package shellcommands

import (
	"strings"
	"testing"
)

func TestCutDir(t *testing.T) {
	for script, want := range map[string]string{
		"cd /repo && make test":              "/repo|make test",
		"cd '/my repo' && a && b || c; d":    "/my repo|a && b || c; d",
		"cd sub; make | tail -5":             "sub|make | tail -5",
		"cd sub\ncat <<'EOF'\nx $y\nEOF\n":   "sub|cat <<'EOF'\nx $y\nEOF\n",
		`cd "a b"/c && x`:                    "a b/c|x",
		"cd /repo":                           "",
		"cd $DIR && make":                    "",
		"cd /repo || make":                   "",
		"cd - && make":                       "-|make",
		"cd /repo & make":                    "",
		"! cd /repo && make":                 "",
		"(cd /repo && make)":                 "",
		"cd /repo | cat && make":             "",
		"cd /repo > /tmp/x && make":          "",
		"A=1 cd /repo && make":               "",
		"cd -- /repo && make":                "",
		"make":                               "",
		"cd /repo && {":                      "",
		"cd /repo && make && cd .. && make;": "/repo|make && cd .. && make;",
		"cd ~/repo && make":                  "",
	} {
		dir, rest, ok := cutDir(script)
		if got := dir + "|" + rest; ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v, want %q", script, got, ok, want)
		}
	}
}

func TestPatch(t *testing.T) {
	const patch = "*** Begin Patch\n*** Update File: a.go\n@@\n-x := \"$HOME\"\n+y := `a`\n*** End Patch\n"
	for script, want := range map[string]string{
		"apply_patch <<'EOF'\n" + patch + "EOF":                   "|" + patch,
		"apply_patch <<'EOF'\n" + patch + "EOF\n":                 "|" + patch,
		"apply_patch << \"PATCH\"\n" + patch + "PATCH\n":          "|" + patch,
		"applypatch <<EOF\n" + patch + "EOF":                      "|" + patch,
		"cd /repo/sub && apply_patch <<'EOF'\n" + patch + "EOF\n": "/repo/sub|" + patch,
		"cd sub\napply_patch <<'EOF'\n" + patch + "EOF":           "sub|" + patch,
		"apply_patch '" + patch + "'":                             "|" + patch,
		"apply_patch <<'EOF'\r\n*** Begin Patch\r\nEOF":           "|*** Begin Patch\n",
		"apply_patch <<'EOF'\n" + patch:                           "|" + patch, // to bash it ends with the script
		"apply_patch <<'EOF' && go test\n" + patch + "EOF":        "",
		"apply_patch <<'EOF'\n" + patch + "EOF\ngo test":          "",
		"apply_patch --check <<'EOF'\n" + patch + "EOF":           "",
		"cat <<'EOF' | apply_patch\n" + patch + "EOF":             "",
		"apply_patch < patch.txt":                                 "",
		"apply_patch \"$(cat patch.txt)\"":                        "",
		"git apply <<'EOF'\n" + patch + "EOF":                     "",
		"apply_patch <<'EOF' > log\n" + patch + "EOF":             "",
		"apply_patch": "",
		"make " + strings.Repeat("x", 10) + " # apply_patch <<'EOF'\n": "",
	} {
		dir, got, ok := Patch(script)
		if got = dir + "|" + got; ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v, want %q", script, got, ok, want)
		}
	}
}
