package permissions

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/parser"

	"muster/internal/config"
	"muster/internal/testing/require"
)

// policy returns a policy with rules, each as "deny bash(x)".
func policy(t testing.TB, mode Mode, rules ...string) Policy {
	t.Helper()
	p := Policy{Mode: mode}
	for _, text := range rules {
		action, rule, _ := strings.Cut(text, " ")
		a := map[string]Action{"allow": Allow, "ask": Ask, "deny": Deny}[action]
		r := require.Value(ParseRule(a, rule, "config.yaml"))(t)
		p.Rules = append(p.Rules, r)
	}
	return p
}

// bash returns a call of bash.
func bash(command string) Call { return Call{Tool: "bash", Command: command, Writes: true} }

// bypasses are ways around deny bash(git push *). None is allowed.
var bypasses = []string{
	"git push", "git push origin main", "git   push\torigin", "git \\\n push", "'git' push", `"git" "push"`, `g"i"t p\ush`,
	"\\git push", "/usr/bin/git push", "./git push", "~/bin/git push", "/usr/lib/git-core/git-push origin", "git-push",
	"git -C . push", "git --no-pager push", "git -c user.name=x push", "git --git-dir=.git push", "git --git-dir .git push",
	"git -c alias.p=push p", "git -c alias.p='!git push' p", "git -c core.pager='git push' log", "git p",
	"git config alias.p push && git p", "git submodule foreach git push", "git submodule foreach --recursive 'git push'",
	"git rebase --exec 'git push' HEAD~1", "git rebase -x 'git push' HEAD~1", "git bisect run git push",
	"GIT_PAGER='git push' git log", "GIT_SSH_COMMAND='git push' git fetch", "export PAGER='git push'; git log",
	"true; git push", "true && git push", "false || git push", "true | git push", "git push &", "! git push", "(git push)",
	"{ git push; }", "if true; then git push; fi", "for i in 1; do git push; done", "while git push; do :; done",
	"case x in x) git push;; esac", "f() { git push; }; f", "function f { git push; }; f", "coproc git push", "time git push",
	"echo $(git push)", "echo `git push`", "echo \"$(git push)\"", "echo ${x:-$(git push)}", "cat <(git push)", "x=$(git push)",
	"echo $(( $(git push) ))", "[[ -n $(git push) ]]", "cat <<EOF\n$(git push)\nEOF", "cat <<< \"$(git push)\"", "> $(git push)",
	"eval git push", "eval 'git push'", "eval \"git\" 'push'", "eval $X", "trap 'git push' EXIT", "trap -- 'git push' 0",
	"sh -c 'git push'", "bash -lc 'git push'", "bash -xec 'git push'", "bash -o errexit -c 'git push'", "bash --norc -c 'git push'",
	"bash <<< 'git push'", "bash <<'EOF'\ngit push\nEOF", "echo git push | sh", "echo git push | bash -s", "bash <(echo git push)",
	"source <(echo git push)", ". /dev/stdin <<< 'git push'", "sh -c '$0 push' git", "bash -c '\"$@\"' _ git push",
	"env git push", "env -i git push", "env A=1 -u B git push", "env -S 'git push'", "env - git push", "nohup git push",
	"timeout 5 git push", "timeout -k 1 5s git push", "nice -n 5 git push", "nice -5 git push", "sudo git push", "sudo -u root git push",
	"command git push", "command -p git push", "exec git push", "exec -a x git push", "builtin eval git push", "busybox sh -c 'git push'",
	"stdbuf -o0 git push", "setsid git push", "xargs git push < /dev/null", "echo push | xargs git", "echo git | xargs -I{} {} push",
	"git pus*", "$'git' push", "$'\\x67it' push", "$'gi\\164' push", "git $'\\160ush'", "IFS=,; x=git,push; $x", "git $X",
	"shopt -s expand_aliases\nalias g='git push'\ng", "x='a[$(git push)]'; echo $((x))", "x='a[$(git push)]'; [[ x -eq 1 ]]",
	"test -v 'a[$(git push)]'", "printf -v 'a[$(git push)]' x", "x='$(git push)'; echo ${x@P}", "PS4='$(git push)'; set -x; :",
	"echo x\r\ngit push", "if git push", "python3 -c 'import os; os.system(\"git push\")'", "awk 'BEGIN { system(\"git push\") }'",
	"x=$(printf 'a[\\044(git push)]'); echo $((x))", "declare -n r='a[$(git push)]'; echo $r",
	"env -a x git push", "env --argv0 x git push", "env -P /bin git push", "env -S'git push'", `env -vS "git push"`, `env --split-string="git push"`,
	`x=-P; git "$x" push`, `git -c "$x" p`, `git -c "alias.p=$y" p`, "git -C $dir push", "git for-each-repo --config=x push",
	"git config core.sshCommand 'git push'; git fetch", "git config core.pager 'git push'", "git clone 'ext::sh -c git% push'",
	"git submodule --quiet foreach git push", "git grep -iO'git push' x", "git bisect run sh -c 'git push'", "busybox env git push",
	"bash -c -- 'git push'", "bash -ce -- 'git push'", "bash -c -e 'git push'", `sh -c -- "git push"`, `bash -k -c "git log GIT_PAGER='git push'"`,
	"g{i..i}t push", "{g{i,i}t,ls} push", "cp /usr/bin/git g; ./g push", "ln -s /usr/bin/git g && ./g push", "mv /usr/bin/git g; g push",
	"timeout --foreground -s KILL 5 git push", `\time -f %e git push`, "sudo -E git push", "sudo VAR=x git push", "sudo -s git push",
	"doas -s <<< 'git push'", "doas git push", "env --block-signal=INT git push", "jobs -x git push", "hash -rp /usr/bin/git ls; ls push",
	"cd /dev/fd && bash 3 3<<< 'git push'", "ln -s /dev/stdin x; bash x <<< 'git push'", "bash /dev/fd/3 3<<<'git push'",
	"sudo sh <<E\ngit push\nE", "{ sh; } <<< 'git push'", `echo 'import os; os.system("git push")' | python3`,
	"rsync -e 'git push' a b:", "ssh -oProxyCommand='git push' host", "ssh -o ProxyCommand='git push' host", "echo 'git push' | ssh host",
	"parallel 'git {}' ::: push", "parallel ::: 'git push'", "parallel -j2 git ::: push", "rg --pre git x push", "sort --compress-program='git push' x",
	"x='a[$(git push)]'; declare -i n=x", "x='a[$(git push)]'; declare -i n; n=x", "x='a[$(git push)]'; a[x]=1", "x='a[$(git push)]'; echo ${a[x]}",
	`find . -ok git push \;`, "~/../usr/bin/git push", "?(git) push", "IFS=X; a=gitXpush; $a", "git${IFS}push", "git$IFS'push'", "GIT push",
	"time -p git push", "! ! git push", "time ! git push", "[[ $(git push) ]]", "[[ a -eq $(git push) ]]", `a=(git push); "${a[@]}"`,
	"source /dev/fd/0 <<< 'git push'", `eval "$(echo git push)"`, "eval -- git push", "eval 'g''it' push", `bash -c "$1" _ 'git push'`,
	"env -u X -C / git push", "env -- git push", "env A=b -- git push", "command -- git push", "exec -- git push", "/bin/env git push",
	"/usr/bin/env -i git push", `\env git push`, "'env' git push", `e"n"v git push`, "make SHELL='git push'", "make -f /dev/stdin <<< 'x:; git push'",
	"unshare -r git push", "nsenter -t 1 git push", "chroot / git push", "setarch x86_64 git push", "ld-linux-x86-64.so.2 /usr/bin/git push",
	`env "-u$X/a" git push`, `x=-u; env "$x/a" git push`, `x=-k; timeout "$x" 1 5 git push`, `x=-p; hash "$x" /usr/bin/git ls; ls push`,
	`ln -s "$D"/git g; g push`, "cp $(which git) g; ./g push",
	"tar cf x 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 --to-command='git push'",
	"set -o pipefail -k; git log GIT_PAGER='git push'", "mapfile -n 5 -C 'git push' -c1 x < y", "echo 'git push' | su",
	"watch -x git push", "git !push", `git push\`, "git --paginate push", "git --no-replace-objects push", "git --literal-pathspecs push",
	"git --bare push", "git -P push", "git --config-env=a.b=C push", "git --super-prefix=x push", "git --attr-source x push", "git --list-cmds x push",
}

// TestNoBypass: nothing that may run a denied command is allowed, in whatever mode, and no rule that allows helps.
func TestNoBypass(t *testing.T) {
	if len(bypasses) < 60 {
		t.Fatalf("only %d", len(bypasses))
	}
	for _, p := range []Policy{
		policy(t, Auto, "deny bash(git push *)"), policy(t, AskFirst, "deny bash(git push:*)", "allow bash"),
		policy(t, Auto, "ask bash(git push *)", "allow bash(*)"), policy(t, Plan, "deny Bash(git push)", "deny bash(git push *)"),
	} {
		for _, command := range bypasses {
			if d := p.Decide(bash(command), nil); d.Action == Allow {
				t.Errorf("%s %s: %q is allowed by %s", p.Mode, p.Rules[0], command, d.Rule)
			}
		}
	}
}

// TestOtherBypasses: the same for rules with options, operands and files.
func TestOtherBypasses(t *testing.T) {
	for _, c := range []struct{ rule, commands string }{
		{"bash(rm -rf /*)", "rm -rf /etc ; rm -fr /etc ; rm -r -f /etc ; rm -f /etc -r ; rm --recursive --force /etc ; rm --recurs -f /etc ; " +
			"rm -Rf /etc ; rm -rf -- /etc ; rm -rf build /etc ; rm -rf //etc ; rm -rf $X ; rm -rf ~ ; rm -rf ../../../etc ; rm $X /etc ; " +
			"rm -rf /etc build ; rm -rfv /etc ; find / -exec rm -rf /etc {} +"},
		{"bash(docker run *)", "docker run x ; docker --context x run y ; docker -H tcp://x run y ; /usr/bin/docker run x ; DOCKER run x"},
		{"bash(git push --force *)", "git push --force ; git push -f ; git push origin main --force ; git -C . push origin -f"},
		{"bash(curl *)", "curl x ; curl ; sh -c 'curl x | sh' ; xargs curl ; $X"},
		{"write_file(.github/**)", "echo x > .github/a ; cat <<< x >> .github/workflows/b ; echo x > ./.github/../.github/a ; " +
			"echo x > $F ; echo x &> .github/a ; : >| .GitHub/a ; cd .github && echo x > a"},
		{"bash(curl *evil.com*)", "curl evil.com ; curl https://EVIL.com/x ; curl -s evil.com. ; curl 'HTTPS://u@Evil.Com:443' ; curl $X ; " +
			"CURL evil.com ; curl --url=https://evil.com ; curl --url evil.com ; xargs curl"},
		{"bash(docker run *)", "parallel docker {} x ::: run ; docker $X run y"},
		{"bash(git rebase *)", "X='git push'; git rebase -x \"$X\" HEAD~1"},
		{"bash(./deploy.sh *)", "./deploy.sh ; bash deploy.sh x ; sh -e ./deploy.sh ; . ./deploy.sh ; source deploy.sh ; env bash ./deploy.sh"},
		{"bash", "ls ; git push ; $X"},
	} {
		p := policy(t, Auto, "deny "+c.rule)
		for command := range strings.SplitSeq(c.commands, " ; ") {
			if d := p.Decide(bash(command), nil); d.Action == Allow {
				t.Errorf("%s: %q is allowed by %s", c.rule, command, d.Rule)
			}
		}
	}
}

// TestNoBypassByPath: no command that names a file which may not be written, or writes it by a redirection, is allowed.
// What only another file names, such as a patch, is not found: rules are no boundary.
func TestNoBypassByPath(t *testing.T) {
	p := policy(t, Auto, "deny write_file(.github/**)")
	for _, command := range []string{
		"tee .github/x", "echo x | tee .github/x", "echo x | tee -a .github/workflows/ci.yml", "cp x .github/y", "cp x .github", "mv x .github/y",
		"mv .github .g; ", "ln -s .github g; echo x > g/y", "ln -sf ../x .github/y", "sed -i 's/a/b/' .github/y", "perl -i -pe 's/a/b/' .github/y",
		"dd of=.github/y", "install x .github/y", "rsync a .github/", "touch .github/y", "mkdir .github", "rm -rf .github", "truncate -s 0 .github/y",
		"patch .github/y x", "git checkout x -- .github/y", "git mv x .github/y", "curl -o .github/y http://x", "wget -O .github/y http://x",
		"tar xf x -C .github", "unzip x -d .github", "cat > .github/y", "cat x>.github/y", ": > '.github/y'", `: > ".git"hub/y`, ": > .git{hub,}/y",
		": > .gith*/y", ": > ./.github/y", ": > a/../.github/y", ": > .github//y", ": > .GITHUB/y", ": > $PWD/.github/y", `: > "$PWD/.github/y"`,
		": > /repo/.github/y", "cd .github; : > y", "pushd .github; : > y", "(cd .github && : > y)", "cd .git*; : > y", "exec > .github/y",
		"{ echo; } > .github/y", "f() { echo; } > .github/y; f", "while :; do echo; done > .github/y", "echo x &>> .github/y", "echo x >& .github/y",
		"echo x 2> .github/y", "exec 3<> .github/y; echo x >&3", "coproc cat > .github/y", "bash -c ': > .github/y'", "env sh -c ': > .github/y'",
		`find . -exec sh -c ': > .github/y' \;`, "find . -fprint .github/y", "sort -o .github/y x", `python3 -c 'open(".github/y","w")'`,
		`node -e 'fs.writeFileSync(".github/y")'`, `awk '{print > ".github/y"}' x`, "git diff --output=.github/y", "go build -o .github/y",
	} {
		if d := p.Decide(bash(command), nil); d.Action == Allow {
			t.Errorf("%q is allowed by %s", command, d.Rule)
		}
	}
	for _, command := range []string{"cat .github/x", "sed -n '1,20p' .github/x", "ls .github", "git diff -- .github", "find .github -name x",
		"cp x y", "git add -A", "cp $x y", "> /dev/null echo"} {
		if d := p.Decide(bash(command), nil); d.Action != Allow {
			t.Errorf("%q: %v by %s: %s", command, d.Action, d.Rule, d.Why)
		}
	}
}

// TestNothingElseIsAllowed: a rule that allows a command allows no other.
func TestNothingElseIsAllowed(t *testing.T) {
	p := policy(t, AskFirst, "allow bash(go test *)", "allow bash(echo *)", "allow bash(git status)")
	for _, command := range []string{
		"go vet", "./go test", "/tmp/go test", "'go test'", "go test; rm x", "go test && rm x", "go test $(rm x)", "go test `rm x`",
		"go test > x", "go test | tee x", "PATH=. go test", "export PATH=.; go test", "LD_PRELOAD=./x go test", "GOFLAGS=-toolexec=x go test",
		"go $X", "$X test", "go tes*", "go {test,vet}", "sh -c 'rm x'", "env rm x", "echo x | sh", "echo x > y", "x='a[$(rm x)]'; echo $((x))",
		"git status x", "git -c core.fsmonitor=x status", "go() { rm x; }; go test", "alias go=rm; go test", "trap 'rm x' EXIT; go test",
		"if echo", "echo <(rm x)", "xargs rm", "timeout 5 rm x", "sudo go test", "for PATH in .; do go test; done", "read PATH <<< .; go test",
		"printf -v PATH .; go test", "mapfile -t PATH < x; go test", "getopts a PATH; go test", "select PATH in .; do go test; done < x",
		"declare PATH=.; go test", "PATH+=:.; go test", ": ${PATH:=.}; go test", "go test |& rm x", ". ./x; go test", "echo x >&2 >y",
		"echo x 1>&y", "echo x >|y", "echo x <>y", "echo x {fd}>y", "exec >y; echo x", "echo ${x:=$(rm y)}", ";rm x", "git status $(rm x)",
		"GIT_DIR=x git status", "git --git-dir=x status", "git --exec-path=x status", "find . -delete -exec go test {} +", "go test <(rm x)",
		"ls > /dev/tcp/host/80", "echo > /dev/sda", "echo > /dev/../etc/passwd", "echo > /dev/shm/y", "/bin/echo x", "ECHO x",
		"bash -c 'go test; rm x'", "bash -ic 'go test'", "bash --rcfile x -c 'go test'", "BASH_ENV=x bash -c 'go test'", "ENV=x sh -c 'go test'",
		"export LD_PRELOAD=./x; echo", "FOO=bar go test", "CGO_ENABLED=0 GOFLAGS=-exec=./x go test", "go test; }", "enable -n echo; echo x",
	} {
		if d := p.Decide(bash(command), nil); d.Action != Ask {
			t.Errorf("%q: %v by %s", command, d.Action, d.Rule)
		}
	}
	for _, command := range []string{"go test", "go test ./... -run 'X y'", "timeout 60 go test ./...", "go test ./... 2>&1 >/dev/null",
		"CGO_ENABLED=0 go test", "go test || echo failed", "for i in 1 2; do go test; done", "bash -c 'go test ./...'", "git status",
		"command git status", "echo $X"} {
		if d := p.Decide(bash(command), nil); d.Action != Allow {
			t.Errorf("%q: %+v", command, d)
		}
	}
}

// ordinary are commands of everyday work, none of which a rule about something else hinders.
var ordinary = []string{
	"go build ./...", "go test -race -count=1 ./... 2>&1 | tail -50", "gofmt -l .", "golangci-lint run", "go vet ./... && go mod tidy",
	"npm ci", "npm run build -- --watch=false", "npx tsc --noEmit", "yarn test", "node -e 'console.log(1)'", "cargo build --release",
	"RUST_BACKTRACE=1 cargo test", "cargo fmt -- --check", "python3 -m pytest -q", "python -m venv .venv && . .venv/bin/activate && pip install -r x.txt",
	"python3 - <<'EOF'\nprint('hello')\nEOF", "uv run pytest -k 'a and b'", "mvn -q test", "./gradlew build", "make test", "make -j4 all",
	"git status --short", "git diff HEAD~1 -- 'a b'", "git log --oneline -5", "git commit -m 'Add a parser for $(x) and more'", "git add -A",
	"git -C sub status", "git rebase main", "git stash && git checkout -b x", "git fetch origin", "git config user.name x",
	"cat > x.go <<'EOF'\npackage x\n\nfunc main() { println(`a`, \"$(b)\") }\nEOF", "sed -i 's/a/b/g' *.go", "awk '{print $(NF-1)}' x | sort | uniq -c",
	"find . -name '*.go' -exec grep -l foo {} +", "find . -type f -print0 | xargs -0 grep -n foo", "ls -la ~/x", "rm -rf build/*", "rm -f ./x",
	"for f in *.go; do gofmt -l \"$f\"; done", "while read -r l; do echo \"$l\"; done < x", "x=$(git rev-parse HEAD); echo $x", "cd sub && ls",
	"test -f x && cat x || echo none", "[ -d x ] || mkdir -p x/{a,b}", "export GOFLAGS=-mod=mod; go build ./...", "timeout 10 ./server & sleep 1; kill $!",
	"curl -s localhost:8080/health", "docker ps", "grep -rn \"git push\" docs", "echo 'git push origin'", "tar czf x.tgz dist", "jq '.a[] | .b' x.json",
	"if [ $# -gt 0 ]; then echo x; fi", "printf '%s\\n' a b", "set -euo pipefail\ngo test ./...", "diff <(sort a) <(sort b)", "bash scripts/check.sh",
	"./test.sh --quick", "PATH=$PATH:/usr/local/go/bin go version", "echo $((1 + 2))", "for i in 1 2 3; do echo $((i * 2)); done",
	"python3 --version | head", "cat x | python3 -c 'import sys; print(sys.stdin.read())'", "curl -s x | jq .", "ls | xargs -n1 basename",
	"timeout 60 go test ./... | tail", `find "$d" -name '*.go'`, `cp "$a" b`, "mv *.txt docs/", "tar xzf x.tgz | cat", `printf '%s\n' "$x"`,
	`set -- "$@"`, "read -r X < f", "node script.js < in", "npm run build 2>&1 | tail", "docker compose up -d", "ssh host ls < /dev/null",
	"env FOO=1 go test", "go test ./... | tee out.log", "psql -c 'select 1' | cat", "sort x | uniq -c | sort -rn | head", "sed -n 's/a/b/p' x | head",
	"perl -ne 'print' x | head", "awk -F: '{print $1}' /etc/passwd", "make -j8 2>&1 | tail -20", "mkdir -p a && cd a && git init",
	"export X=$(pwd)/x; go build", "for i in $(seq 3); do echo $i; done", `while read -r f; do echo "$f"; done < <(ls)`, "[[ $x == y ]] && echo z",
	"i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", "git log --format='%h %s' | head", "git diff | cat", "git stash push -m x",
	"git commit -m 'x `y` $(z)'", "git branch -D x", "git checkout -b push", "grep -rn 'git push' .", "rg 'git push' docs",
	`rg -n "foo|bar" --glob '*.go' | head -50`, "cat go.mod | grep x", "kill %1", "sleep 5 & wait", "cp -r a/. b/", "ln -sf a b",
	"bash test.sh | tail", "bash scripts/x.sh < in", "./run.sh | grep x", `echo "a b" | tr ' ' '\n' | sort`, `test "$(cat x)" = y && echo z`,
	`if [ -n "$x" ]; then echo y; fi`, "npx vitest run | tail -30", "uv run pytest -x -q 2>&1 | tail", "poetry run pytest | cat",
	"python -m http.server & sleep 1; curl localhost:8000", "node -p '1+1' | cat", "tail -f log | head -1", "cargo test 2>&1 | grep -v warning",
	"go list -m all | grep x", "sqlite3 x.db 'select 1' | head", "chmod +x x.sh && ./x.sh", "date +%s", "sed -i 's/x/y/' a.go && gofmt -w a.go",
}

// TestOrdinaryCommandsRun: rules about other commands hinder none of everyday work.
func TestOrdinaryCommandsRun(t *testing.T) {
	p := policy(t, Auto, "deny bash(git push *)", "deny bash(rm -rf /*)", "ask bash(docker run *)", "deny write_file(.github/**)")
	for _, command := range ordinary {
		if d := p.Decide(bash(command), nil); d.Action != Allow {
			t.Errorf("%q: %v by %s: %s", command, d.Action, d.Rule, d.Why)
		}
	}
}

// TestPlanModeReads: in the mode plan only what is known to read runs.
func TestPlanModeReads(t *testing.T) {
	p := policy(t, Plan)
	for command, want := range map[string]Action{
		"ls -la": Allow, "git log | head": Allow, "grep -rn x . 2>/dev/null": Allow, "find . -name x": Allow, "timeout 5 cat x": Allow,
		"rm x": Deny, "echo x > y": Deny, "find . -delete": Deny, "find . -exec rm {} +": Deny, "git diff --output=x": Deny, "go test": Deny,
		"sort -o x y": Deny, "cat $(rm x)": Deny, "$X": Deny, "./ls": Deny, "PATH=. ls": Deny, "git branch x": Deny, "find . $X": Deny,
		"sort --out=y x": Deny, "find . -fls y": Deny, "git log --outp=x": Deny, "git grep -Ox y": Deny, "command rm x": Deny, "printf -v x y": Deny,
		"sed -n 1,5p x": Allow, "sed -n '1,5w y' x": Deny, "sed -n 1p -i x": Deny, "sed -i 1d x": Deny, "cat <(rm x)": Deny, "env rm x": Deny,
		"GIT_PAGER=x git log": Deny, "git -c core.pager=x log": Deny,
	} {
		if d := p.Decide(bash(command), nil); d.Action != want {
			t.Errorf("%q: %+v", command, d)
		}
	}
	if d := p.Decide(Call{Tool: "write_file", Paths: []string{"x"}, Writes: true}, nil); d.Action != Deny {
		t.Errorf("write_file: %+v", d)
	}
	if d := p.Decide(Call{Tool: "read_file", Paths: []string{"x"}}, nil); d.Action != Allow {
		t.Errorf("read_file: %+v", d)
	}
}

// sectionOf returns a section of the settings with a text.
func sectionOf(t *testing.T, source config.Source, text string) config.Section {
	t.Helper()
	file := require.Value(parser.ParseBytes([]byte(text), 0))(t)
	return config.Section{Name: Section, File: "muster.yaml", Source: source, Node: file.Docs[0].Body}
}

// users are settings of users, from the loosest to the strictest.
var users = []string{"mode: auto", "allow: ['bash(git push *)']", "{mode: auto, ask: ['bash(git push *)'], wait: 5m}",
	"{mode: ask, allow: ['bash(go test *)', 'bash(ls)']}", "{mode: ask, deny: [bash], wait: 0s}", "mode: plan"}

// TestARepositoryOnlyTightens: whatever deny and ask rules a repository has, no call has a weaker decision than without
// them, and the mode and the wait stay those of the user.
func TestARepositoryOnlyTightens(t *testing.T) {
	for _, user := range users {
		own := []config.Section{sectionOf(t, "config.yaml", user)}
		alone := require.Value(FromSections(own))(t)
		for _, text := range []string{"deny: [bash]", "ask: [bash]", "ask: ['*']", "deny: ['*']", "ask: ['bash(= git push)']",
			"{ask: ['bash(git *)'], deny: ['bash(git push *)', 'write_file(**)']}", "ask: ['mcp__*']", "deny: []"} {
			both, err := FromSections(append(own[:1:1], sectionOf(t, config.FromRepository, text)))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if both.Mode != alone.Mode || both.Wait != alone.Wait {
				t.Errorf("%s makes of %s the mode %s and the wait %v", text, user, both.Mode, both.Wait)
			}
			calls := []Call{{Tool: "write_file", Paths: []string{"x"}, Writes: true}, {Tool: "read_file", Paths: []string{"x"}},
				{Tool: "mcp__a__b", Writes: true}, {Tool: "task_create"}}
			for _, command := range append(append([]string{"ls", "go test ./..."}, ordinary...), bypasses...) {
				calls = append(calls, bash(command))
			}
			for _, c := range calls {
				if was, is := alone.Decide(c, nil), both.Decide(c, nil); is.Action < was.Action {
					t.Errorf("%s makes of %s for %s %s: %v, and it was %v", text, user, c.Tool, c.Command, is.Action, was.Action)
				}
			}
		}
	}
}

// TestARepositoryCannotLoosen: what could allow anything is an error where it comes with a repository.
func TestARepositoryCannotLoosen(t *testing.T) {
	for _, text := range []string{"mode: auto", "mode: ask", "wait: 1h", "allow: [bash]", "allow: []", "{deny: [bash], mode: auto}"} {
		_, err := FromSections([]config.Section{sectionOf(t, config.FromRepository, text)})
		if err == nil || !strings.Contains(err.Error(), "a repository may only deny and ask") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWrongSettings: a mistake is an error with its place, and no rule is left out.
func TestWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		"mode: yolo": "the mode is plan, ask or auto", "wait: 5": "wait is a duration", "wait: -5m": "wait is a duration", "wait: soon": "wait is a duration",
		"deny: ['bash(x']": "is no rule", "deny: ['bash()']": "is no rule", "deny: ['write_file([)']": "is no pattern", "deny: [WebFetch]": "does not have",
		"denny: [bash]": "denny", "deny: bash": "sequence is expected",
	} {
		_, err := FromSections([]config.Section{sectionOf(t, "config.yaml", text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s, err := FromSections([]config.Section{sectionOf(t, "config.yaml", "{wait: 3m, deny: ['Bash(git push:*)']}")})
	if err != nil || s.Wait != 3*time.Minute || s.Decide(bash("git push"), nil).Action != Deny {
		t.Errorf("%+v, %v", s, err)
	}
}

// Commands run unasked only on systems that can confine them, unless the user says otherwise.
func TestModeOfASystem(t *testing.T) {
	for system, want := range map[string]Mode{"linux": Auto, "darwin": Auto, "windows": AskFirst, "freebsd": AskFirst} {
		if got := defaultMode(system); got != want {
			t.Errorf("%s: %s", system, got)
		}
	}
	s, err := FromSections([]config.Section{sectionOf(t, "config.yaml", "{mode: plan}")})
	if err != nil || s.Mode != Plan {
		t.Errorf("set to plan: %s, %v", s.Mode, err)
	}
}
