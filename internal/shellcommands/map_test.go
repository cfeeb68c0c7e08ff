package shellcommands

import (
	"strings"
	"testing"
)

func TestMapPaths(t *testing.T) {
	const root = "/home/ann/my repo"
	codes := map[string]bool{"python3 <<EOF\nopen('/home/ann/my repo/a')\nEOF": true, `cd "/home/ann/my repo`: true}
	for script, want := range map[string]string{
		"python3 <<EOF\nopen('/home/ann/my repo/a')\nEOF":      "",
		`cd '/home/ann/my repo' && make`:                       `cd '/L' && make`,
		`cat '/home/ann/my repo/a b' "/home/ann/my repo/c d"`:  `cat '/L/a b' "/L/c d"`,
		`cd "/home/ann/my repo/src"; ls`:                       `cd "/L/src"; ls`,
		`cat "/home/ann/my repo/$f" >"/home/ann/my repo/out"`:  `cat "/L/$f" >"/L/out"`,
		`X="/home/ann/my repo" go test`:                        `X="/L" go test`,
		`gcc -I"/home/ann/my repo/include" a.c`:                `gcc -I"/L/include" a.c`,
		`bash -lc 'cd "/home/ann/my repo" && make'`:            `bash -lc 'cd "/L" && make'`,
		`python3 -c "open('/home/ann/my repo/a b')"`:           `python3 -c "open('/L/a b')"`,
		`for f in "/home/ann/my repo"/*.py; do cat "$f"; done`: `for f in "/L"/*.py; do cat "$f"; done`,
		`echo $(ls "/home/ann/my repo")`:                       `echo $(ls "/L")`,
		`[[ -f "/home/ann/my repo/a" ]] && ls`:                 `[[ -f "/L/a" ]] && ls`,
		`grep -rn x "/home/ann/my repo"`:                       `grep -rn x "/L"`,
		// Texts.
		`echo "/home/ann/my repo/a" >> conf`:               "",
		`grep -rn "/home/ann/my repo/a" .`:                 "",
		`git commit -m "Look at /home/ann/my repo/a"`:      "",
		"cat > conf <<EOF\ndir=/home/ann/my repo\nEOF":     "",
		"cat > conf <<'EOF'\ndir=/home/ann/my repo\nEOF":   "",
		`ls # "/home/ann/my repo"`:                         "",
		`cd "/home/ann/my repo`:                            "", // cannot be parsed
		"cat <<EOF\n$(cat '/home/ann/my repo/a')\nEOF":     "cat <<EOF\n$(cat '/L/a')\nEOF",
		"cat <<EOF >'/home/ann/my repo/a'\n/x\nEOF\nls \n": "cat <<EOF >'/L/a'\n/x\nEOF\nls \n",
	} {
		if want == "" {
			want = script
		}
		got, others := MapPaths(script, root, func(path string) string { return "/L" + strings.TrimPrefix(path, root) })
		if got != want || (len(others) == 1) != codes[script] {
			t.Errorf("%s\n got %s\nwant %s; others %q", script, got, want, others)
		}
	}
}
