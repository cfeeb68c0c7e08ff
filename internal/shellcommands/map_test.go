package shellcommands

import (
	"strings"
	"testing"
)

// mapped maps a script as a member's: the root becomes root/L. A path with a space is there if it is "a b" or "c d".
func mapped(script, root string) (string, []string) {
	return MapPaths(script, root, func(path string) (string, bool) {
		rest := strings.TrimPrefix(path, root)
		return root + "/L", !strings.HasPrefix(rest, "/.git") && (!strings.Contains(rest, " ") || rest == "/a b" || rest == "/c d")
	})
}

func TestMapPaths(t *testing.T) {
	for _, root := range []string{"/home/ann/my repo", "/app", "/r/app"} {
		for script, want := range map[string]string{
			`cd 'R' && make`:                       `cd 'N' && make`,
			`cd "R/src"; ls`:                       `cd "N/src"; ls`,
			`cat 'R/a b' "R/c d"`:                  `cat 'N/a b' "N/c d"`,
			`cat "R/$f" >"R/out"`:                  `cat "N/$f" >"N/out"`,
			`X="R" go test`:                        `X="N" go test`,
			`export LIB="R/src"; pytest`:           `export LIB="N/src"; pytest`,
			`gcc -I"R/include" --sysroot="R" a.c`:  `gcc -I"N/include" --sysroot="N" a.c`,
			`git -C "R" log`:                       `git -C "N" log`,
			`bash -lc 'cd "R" && make'`:            `bash -lc 'cd "N" && make'`,
			`for f in "R"/*.py; do cat "$f"; done`: `for f in "N"/*.py; do cat "$f"; done`,
			`echo $(ls "R")`:                       `echo $(ls "N")`,
			`[[ -f "R/a" ]] && ls`:                 `[[ -f "N/a" ]] && ls`,
			`grep -rn x "R"`:                       `grep -rn x "N"`,
			`grep -A 3 x "R/log"`:                  `grep -A 3 x "N/log"`,
			`rg --files "R/src"`:                   `rg --files "N/src"`,
			`sed -i -e1d "R/x"`:                    `sed -i -e1d "N/x"`,
			`sed -i s/a/b/ "R/x"`:                  `sed -i s/a/b/ "N/x"`,
			`jq .version "R/package.json"`:         `jq .version "N/package.json"`,
			`python3 "R/x.py" -v`:                  `python3 "N/x.py" -v`,
			`timeout 60 make -C "R"`:               `timeout 60 make -C "N"`,
			"cat <<EOF\n$(cat 'R/a')\nEOF":         "cat <<EOF\n$(cat 'N/a')\nEOF",
			"cat <<EOF >'R/a'\n/x\nEOF\nls \n":     "cat <<EOF >'N/a'\n/x\nEOF\nls \n",
			// Texts.
			`echo "R/a" >> conf`:                     "",
			`command echo "R/a" >> conf`:             "",
			`env A=1 echo "R/a" >> conf`:             "",
			`grep -rn "R/a" .`:                       "",
			`grep -A 3 "R/a" log`:                    "",
			`rg -e x -e "R/a"`:                       "",
			`grep -rn "R/a" . | head`:                "",
			`git grep "R/a"`:                         "",
			`git log --grep="R/a"`:                   "",
			`git config k "R/z"`:                     "",
			`git commit -m "R/a"`:                    "",
			`git commit -m "Look at R/a"`:            "",
			`npm config set prefix "R/p"`:            "",
			`jq --arg p "R/p" '.p=$p' f > g`:         "",
			`sed -i -e s#a#b# -e 's#x#R/y#' f`:       "",
			"cat > conf <<EOF\ndir=R\nEOF":           "",
			"cat > conf <<'EOF'\ndir=R\nEOF":         "",
			`cat <<< "root=R" > conf`:                "",
			"bash -lc 'cat > c <<X\nroot=R/d\nX\n'":  "",
			`bash -c 'echo "R" > conf'`:              "",
			`ls # "R"`:                               "",
			`cat "/usr/srcR/x"`:                      "",
			`cp "$HOMER/x" y`:                        "",
			`curl "https://hR/x"`:                    "",
			`git show "HEAD:x" && cat "R/.git/HEAD"`: "others",
			// What a program may open, and is not mapped.
			`python3 -c "open('R/a')"`:        "others",
			`perl -pi -e 's#root#R/new#' x`:   "others",
			`jq '.root="R/x"' f > g`:          "others",
			`eval "cat 'R/a'"`:                "others",
			`trap "rm -rf 'R/tmp'" EXIT`:      "others",
			`node -e 'x("R/x", "y")'`:         "others",
			`printf '%s\n' "R/a" | xargs rm`:  "others",
			`docker run -v "R:/x" y`:          "others",
			"python3 <<EOF\nopen('R/a')\nEOF": "others",
			`cd "R`:                           "others", // cannot be parsed
		} {
			script, want = strings.ReplaceAll(script, "R", root), strings.ReplaceAll(want, "R", root)
			isOther := want == "others"
			if want == "" || isOther {
				want = script
			}
			want = strings.ReplaceAll(want, "N", root+"/L")
			if !strings.Contains(script, root) { // such as EOF in capitals
				t.Fatalf("%s", script)
			}
			got, others := mapped(script, root)
			if got != want || (len(others) > 0) != isOther {
				t.Errorf("%s\n got %s\nwant %s; others %q", script, got, want, others)
			}
		}
	}
	// Without quotes, and with escaped characters.
	for script, want := range map[string]string{
		`cd /app && rm -rf build/app /tmp/app/cache ../app $X/app`: `cd /app/L && rm -rf build/app /tmp/app/cache ../app $X/app`,
		`gcc -I./app/include -I/app/include -L/app`:                `gcc -I./app/include -I/app/L/include -L/app/L`,
		`cat /application/x /app2 /app/x`:                          `cat /application/x /app2 /app/L/x`,
		`rsync /tmp/x/r/app/ docker cp c:/app/x .`:                 `rsync /tmp/x/r/app/ docker cp c:/app/x .`,
	} {
		if got, _ := mapped(script, "/app"); got != want {
			t.Errorf("%s\n got %s\nwant %s", script, got, want)
		}
	}
	if got, others := mapped(`cd /my\ app && echo x > y`, "/my app"); len(others) != 1 || got != `cd /my\ app && echo x > y` {
		t.Errorf("%s, others %q", got, others)
	}
}
