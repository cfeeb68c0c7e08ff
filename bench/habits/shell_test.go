package main

import (
	"reflect"
	"testing"
)

func TestPathsOfCommands(t *testing.T) {
	for _, c := range []struct {
		command             string
		abs, tmp, cd, cdAbs bool
	}{
		{"ls src", false, false, false, false},
		{"cd src && ls", false, false, true, false},
		{"cd /home/x/p && go test ./...", true, false, true, true},
		{`cd "C:\work\site"; npm run build`, true, false, true, true},
		{"go test > /tmp/log", true, true, false, false},
		{"awk '/x/ {print}' file; sed s/a/b/ file; curl localhost:80/api/x", false, false, false, false},
		{"grep -n x --file=/etc/hosts", true, false, false, false},
		{"make 2>/dev/null", false, false, false, false},
	} {
		rest := belowTmp.ReplaceAllString(c.command, " ")
		if absolute.MatchString(c.command) != c.abs || absolute.MatchString(rest) != (c.abs && !c.tmp) ||
			beginsWithCd.MatchString(c.command) != c.cd || cdAbsolute.MatchString(c.command) != c.cdAbs {
			t.Errorf("%q is not told as %+v", c.command, c)
		}
	}
}

func TestWhatCommandsLeave(t *testing.T) {
	for command, want := range map[string][]leaving{
		"ls -l":                                   nil,
		"make test 2>&1 | tail -5":                {tested},
		"go build ./... && go test ./...":         {built, tested},
		"go vet ./...":                            nil,
		"npm ci && npm run build":                 {built, installed},
		"echo a > out.txt; cat x > /tmp/y":        {redirected, inTmp},
		"cat > a.txt <<'EOF'\nx\nEOF\nmkdir -p b": {made, redirected},
		"python3 -m pytest -q":                    {tested},
		"python3 tool.py":                         {python},
		"python3 -c 'print(1)'":                   nil,
		"tsc --noEmit":                            nil,
		"git clone u && wget v":                   {fetched},
		"docker ps":                               nil,
		"uv run pytest":                           {tested},
		"ls > /dev/null":                          nil,
	} {
		if got := leaves(command); !reflect.DeepEqual(got, want) {
			t.Errorf("%q leaves %q, want %q", command, got, want)
		}
	}
}
