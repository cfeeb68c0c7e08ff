package code

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/wait"
	"muster/llm"
	"muster/tool"
)

func TestBash(t *testing.T) {
	k := newKit(t)
	k.put("a.txt", "here\n")
	for command, want := range map[string]string{
		"cat a.txt":                          "here",
		"echo one; echo two >&2; echo three": "one\ntwo\nthree",
		"pwd; echo $PWD":                     k.dir + "\n" + k.dir,
		"true":                               "[exit 0, no output]",
		"cat; echo read":                     "read",
		`printf '\033[31mred\033[0m\a\n'`:    "red",
		`printf 'gr\374\337e\000'`:           "gr\uFFFDe\uFFFD",
		"echo '</inbox>'":                    "</inbox>",
		"[[ a == a ]] && echo bash":          "bash",
	} {
		same(t, command, k.ok("bash", in{"command": command}), want)
	}
	for command, want := range map[string]string{
		"echo no; exit 3": "no\n[exit 3]",
		"exit 1":          "[exit 1]",
		"nosuchcommand": "bash: line 1: nosuchcommand: command not found\n[exit 127: command " +
			"not found]",
		"kill -9 $$": "[exit 137: killed, perhaps for want of memory]",
		" ":          "command is empty.",
		"echo \x00": "command contains a NUL byte, which no shell can take: write it as " +
			"\\0 in printf.",
		"true # " + strings.Repeat("x", 200_000): "cannot start " + proc.Bash("")[0] +
			": argument list too long: write what is long to a file with write_file, and pass its path.",
	} {
		same(t, command[:min(len(command), 60)], k.sorry("bash", in{"command": command}), want)
	}
	k.sorry("bash", in{"command": "true", "timeout": -1})
}

func TestBashTimeIsUp(t *testing.T) {
	k := newKit(t)
	got := k.sorry("bash", in{"command": "(setsid sleep 1000 &); echo begun; sleep 1000", "timeout": 1})
	same(t, "timeout", got, "begun\n[killed with all it had started after 1s: its time was up. Give a longer timeout "+
		"(at most 600), or run it in the background]")
}

func TestBashIsCancelled(t *testing.T) {
	k := newKit(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		wait.Poll(time.Minute, func() bool {
			_, err := os.Stat(filepath.Join(k.dir, "begun"))
			return err == nil
		})
		cancel(muster.CauseShutdown)
	}()
	if _, err := k.try(ctx, "bash", in{"command": "touch begun; sleep 100"}); !errors.Is(err, muster.CauseShutdown) {
		t.Errorf("error %v: a cancelled tool is the runtime's", err)
	}
}

func TestBashThatPrintsMuch(t *testing.T) {
	k := newKit(t)
	r := k.call("bash", in{"command": "seq 1 200000"})
	got := text(r)
	if len(r.Files) != 1 || filepath.Dir(r.Files[0]) != k.place.ReadOnly[0] {
		t.Fatalf("files %v", r.Files)
	}
	if !strings.HasPrefix(got, "1\n2\n") || !strings.HasSuffix(got, "\n199999\n200000") ||
		!strings.Contains(got, "; the whole is in "+r.Files[0]+" ...\n") || len(got) > tool.MaxOutput {
		t.Errorf("%d characters: %.100s", len(got), got)
	}
	same(t, "the whole", k.ok("read_file", in{"path": r.Files[0], "offset": 100_000, "limit": 1}),
		"100000\t100000\n[lines 100000-100000 of 200000; go on with offset 100001]\n")
}

func TestEnviron(t *testing.T) {
	k := newKit(t)
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	t.Setenv("OPENAI_API_KEY", "secret")
	t.Setenv("MUSTER_MODEL", "x")
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("PAGER", "less")
	t.Setenv("LC_KEPT", "yes")
	t.Setenv("OTHER", "secret")
	got := k.ok("bash", in{"command": "env | cut -d= -f1 | sort | uniq -d; env"})
	if strings.Contains(got, "secret") || strings.Contains(got, "MUSTER_MODEL") || strings.Contains(got, "GIT_DIR") {
		t.Errorf("withheld, and there:\n%s", got)
	}
	for _, want := range []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "PAGER=cat", "TERM=dumb", "NO_COLOR=1",
		"GOWORK=off", "LC_KEPT=yes", "MUSTER_CALL="} {
		if n := strings.Count("\n"+got, "\n"+want); n != 1 {
			t.Errorf("%s is there %d times:\n%s", want, n, got)
		}
	}
	// A go.work counts only if git tracks it: another one lies about.
	k.git("init", "-q")
	k.put("go.work", "go 1.26\n")
	same(t, "an untracked go.work", k.ok("bash", in{"command": "echo $GOWORK"}), "off")
	k.git("add", "go.work")
	same(t, "a tracked one", k.ok("bash", in{"command": "echo ${GOWORK-unset}"}), "unset")
}

// TestTools: each tool says of itself what the runtime acts on. All are sent with every request, so they are small.
func TestTools(t *testing.T) {
	k := newKit(t)
	describe := func(tools []llm.Tool) string {
		total, said := 0, ""
		for _, tl := range tools {
			s := tl.Spec()
			total += len(s.Name) + len(s.Description) + len(s.Schema)
			said += s.Name
			for flag, is := range map[string]bool{"reads": s.ReadOnly, "plan": s.NeedsPlan, "polls": s.Polls} {
				if is {
					said += "+" + flag
				}
			}
			said += " "
		}
		if most := 450 * len(tools); total > most {
			t.Errorf("%d bytes, at most %d", total, most)
		}
		return said
	}
	same(t, "an explorer's", describe(ReadTools(k.place)), "read_file+reads glob+reads grep+reads ")
	got := strings.Replace(describe(k.tools), "+polls+reads", "+reads+polls", 1)
	same(t, "a member's", got, "bash+plan read_file+reads write_file+plan edit_file+plan glob+reads grep+reads "+
		"check_background+reads+polls stop_background ")
}
