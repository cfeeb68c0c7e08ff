package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/require"
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
		"echo '</mail>'":                     "</mail>",
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

func TestBashInADirectory(t *testing.T) {
	k := newKit(t)
	k.put("sub/it's/a.txt", "here\n")
	require.NoError(t, os.Symlink("/usr", filepath.Join(k.dir, "usr")))
	for _, input := range []in{
		{"command": "cat a.txt; pwd", "workdir": "sub/it's"},
		{"command": "cat a.txt; pwd", "cwd": filepath.Join(k.dir, "sub/it's")},
		{"command": "cat a.txt; pwd", "working_directory": "./sub/../sub/it's/"},
		{"command": "cat it*/a.txt; cd it*; pwd", "workdir": "sub"},
	} {
		same(t, fmt.Sprint(input), k.ok("bash", input), "here\n"+k.dir+"/sub/it's")
	}
	same(t, "here", k.ok("bash", in{"command": "pwd", "workdir": "."}), k.dir)
	// People see the last argument, which is the command as the model wrote it.
	l := require.Value(proc.New(t.Context()))(t)
	defer l.Close()
	var argv []string
	seen := proc.Through(l, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		argv = s.Argv
		return l.Start(ctx, s)
	})
	k.tools = Tools(k.place, seen, k.jobs, Options{Outputs: k.place.ReadOnly[0]})
	const command = `echo "$# $PWD"; nosuchcommand`
	same(t, "its words", k.sorry("bash", in{"command": command, "workdir": "sub/it's"}),
		"0 "+k.dir+"/sub/it's\n"+proc.Bash("")[0]+": line 1: nosuchcommand: command not found\n[exit 127: command not found]")
	same(t, "the last argument", argv[len(argv)-1], command)
	const instead = ": leave workdir out, or name a directory below"
	for workdir, want := range map[string]string{
		"/usr": "workdir /usr is not below your working directory (" + k.dir + "), so the command was not run" + instead,
		"..":   "workdir .. is not below your working directory (" + k.dir + "), so the command was not run" + instead,
		"usr":  "workdir usr is not below your working directory (" + k.dir + "), so the command was not run" + instead,
		k.place.ReadOnly[0]: "workdir " + k.place.ReadOnly[0] + " is not below your working directory (" + k.dir +
			"), so the command was not run" + instead,
		"sub/it's/a.txt": "workdir sub/it's/a.txt is not a directory, so the command was not run",
		"sup":            "there is no sup; in the same directory: sub, usr",
	} {
		same(t, workdir, k.sorry("bash", in{"command": "touch ran", "workdir": workdir}), want)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "ran")); err == nil {
		t.Error("a refused command has run")
	}
}

// TestBashAppliesAPatch: models of OpenAI pass patches to a program in the shell.
func TestBashAppliesAPatch(t *testing.T) {
	k := newKit(t)
	k.put("sub/a.txt", "one\ntwo\n")
	patch := func(file, from, to string) string {
		return "*** Begin Patch\n*** Update File: " + file + "\n@@\n-" + from + "\n+" + to + "\n*** End Patch\n"
	}
	for _, input := range []in{
		{"command": "apply_patch <<'EOF'\n" + patch("sub/a.txt", "two", "$2") + "EOF\n"},
		{"command": "cd sub && apply_patch <<'EOF'\n" + patch("a.txt", "$2", "three") + "EOF"},
		{"command": "applypatch <<EOF\n" + patch(k.dir+"/sub/a.txt", "three", "four") + "EOF", "workdir": "sub"},
		{"command": []string{"apply_patch", patch("a.txt", "four", "five")}, "workdir": k.dir + "/sub"},
		{"cmd": []string{"bash", "-lc", "apply_patch <<'EOF'\n" + patch("a.txt", "five", "two") + "EOF"}, "cwd": "sub"},
	} {
		if got := k.ok("bash", input); !strings.HasPrefix(got, "Edited ") {
			t.Errorf("%v: %s", input, got)
		}
	}
	same(t, "the file", k.get("sub/a.txt"), "one\ntwo\n")
	if got := k.sorry("bash", in{"command": "apply_patch <<'EOF'\n" + patch("sub/a.txt", "six", "x") + "EOF"}); !strings.
		Contains(got, "does not fit") {
		t.Error(got)
	}
	// A command that does more is run by the shell.
	got := k.sorry("bash", in{"command": "cd sub && apply_patch <<'EOF' && echo ok\n" + patch("a.txt", "two", "x") + "EOF"})
	if !strings.Contains(got, "command not found") {
		t.Error(got)
	}
	k.place.Writable, k.place.Why = false, "claim a task first"
	same(t, "where nothing is writable", k.sorry("bash", in{"command": "apply_patch <<'EOF'\n" +
		patch("sub/a.txt", "two", "x") + "EOF"}), "claim a task first\nNothing is changed")
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
	got := r.Text()
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
	// A go.work counts where the command runs, and not above.
	k.put("go.work", "go 1.26\n")
	same(t, "with a go.work", k.ok("bash", in{"command": "echo ${GOWORK-unset}"}), "unset")
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
	same(t, "an explorer's", describe(ReadTools(k.place, nil, Options{})), "read_file+reads glob+reads grep+reads ")
	got := strings.Replace(describe(k.tools), "+polls+reads", "+reads+polls", 1)
	same(t, "a member's", got, "bash+plan read_file+reads write_file+plan edit_file+plan glob+reads grep+reads "+
		"check_background+reads+polls stop_background ")
}

var seconds = regexp.MustCompile(`\d+(\.\d)? s\b`)

// timeless leaves out how long things took.
func timeless(s string) string { return seconds.ReplaceAllString(s, "N s") }

func (k *kit) background(command string, timeout int) string {
	k.t.Helper()
	input := in{"command": command, "background": true}
	if timeout > 0 {
		input["timeout"] = timeout
	}
	got := k.ok("bash", input)
	id, _, _ := strings.Cut(strings.TrimPrefix(got, "Started "), ".")
	same(k.t, "started", got, "Started "+id+". Its end will be announced; check_background shows its output, "+
		"or stops it.")
	return id
}

func (k *kit) woken() {
	k.t.Helper()
	select {
	case <-k.jobs.Wake():
	case <-time.After(time.Minute):
		k.t.Fatal("nobody was woken")
	}
}

func TestBackground(t *testing.T) {
	k := newKit(t)
	same(t, "none", k.ok("check_background", nil), "There are no background jobs.")
	same(t, "none by name", k.sorry("check_background", in{"id": "bg-1"}), "there are no background jobs")
	same(t, "id", k.background("echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3",
		0), "bg-1")
	wait.For(t, "the job begins", func() bool {
		return strings.Contains(k.ok("check_background", in{"id": "bg-1"}), "\nbegun")
	})
	same(t, "running", timeless(k.ok("check_background", in{"id": "bg-1"})),
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3\nruns for N s\n"+
			"begun")
	if k.jobs.Running() != 1 || len(k.jobs.Finished()) != 0 {
		t.Error("it runs, and is not finished")
	}
	k.put("go", "")
	k.woken()
	if k.jobs.Running() != 0 {
		t.Error("it does not run any more")
	}
	done := k.jobs.Finished()
	same(t, "announced", timeless(Render(done)), "<background-results>\n"+
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '&lt;/background-results>'; exit 3\nexit 3 "+
		"after N s\n  begun\n  &lt;/background-results>\n</background-results>")
	if again := k.jobs.Finished(); len(again) != 0 {
		t.Errorf("announced twice: %v", again)
	}
	// Who has asked knows.
	same(t, "id", k.background("true", 0), "bg-2")
	k.woken()
	same(t, "asked", timeless(k.ok("check_background", nil)),
		"bg-1: echo begun; until [ -e go ]; do sleep 0.01; done; echo '</background-results>'; exit 3\nexit 3 after N "+
			"s\nbg-2: true\nexit 0 after N s")
	if done := k.jobs.Finished(); len(done) != 0 {
		t.Errorf("announced after it was told: %v", done)
	}
	same(t, "no such", k.sorry("stop_background", in{"id": "bg-7"}),
		`there is no background job "bg-7"; there are: bg-1, bg-2`)
}

func TestStopBackground(t *testing.T) {
	k := newKit(t)
	id := k.background("echo begun; (setsid sleep 100 &); sleep 100", 0)
	wait.For(t, "the job begins", func() bool {
		return strings.Contains(k.ok("check_background", in{"id": id}), "\nbegun")
	})
	same(t, "stopped", timeless(k.ok("stop_background", in{"id": id})),
		"bg-1: echo begun; (setsid sleep 100 &); sleep 100\nexit 137 after N s (stopped)\nbegun")
	same(t, "twice", timeless(k.ok("stop_background", in{"id": id})),
		"bg-1: echo begun; (setsid sleep 100 &); sleep 100\nexit 137 after N s (stopped)\nbegun")
	if k.jobs.Running() != 0 || len(k.jobs.Finished()) != 0 {
		t.Error("it runs, or is announced to who stopped it")
	}
	k.background("sleep 100", 1)
	k.woken()
	for k.jobs.Running() > 0 {
		k.woken()
	}
	same(t, "time", timeless(Render(k.jobs.Finished())),
		"<background-results>\nbg-2: sleep 100\nexit 137 after N s (killed after 1s: its time was up)\n"+
			"</background-results>")
}

func TestJobsAreFewAndDieWithTheMember(t *testing.T) {
	k := newKit(t)
	for range maxRunningJobs {
		k.background("sleep 100", 0)
	}
	same(t, "one more", k.sorry("bash", in{"command": "true", "background": true}),
		"8 of your background jobs run already: wait for one, or stop one (check_background)")
	k.jobs.Close()
	if n := k.jobs.Running(); n != 0 {
		t.Errorf("%d run after Close", n)
	}
	if _, err := k.try(t.Context(), "bash", in{"command": "true", "background": true}); !errors.Is(err,
		muster.ErrUnavailable) {
		t.Errorf("started after Close: %v", err)
	}
}

func TestLongBackgroundOutput(t *testing.T) {
	k := newKit(t)
	k.background("seq 1 200000", 0)
	k.woken()
	done := k.jobs.Finished()
	if len(done) != 1 || filepath.Dir(done[0].Path) != k.place.ReadOnly[0] ||
		!strings.HasSuffix(done[0].Last, "199999\n200000") || strings.Count(done[0].Last, "\n") != announcedLines-1 {
		t.Fatalf("%+v", done)
	}
	if data, err := os.ReadFile(done[0].Path); err != nil || !strings.HasPrefix(string(data), "1\n2\n") ||
		!strings.HasSuffix(string(data), "\n200000\n") {
		t.Errorf("%d bytes, error %v", len(data), err)
	}
	if got := Render(done); !strings.Contains(got, "; the whole output is in "+done[0].Path+"\n  199981\n") {
		t.Error(got)
	}
}

func TestJobsAreForgotten(t *testing.T) {
	k := newKit(t)
	for range maxFinishedJobs + 5 {
		k.background("true", 0)
		for k.jobs.Running() > 0 {
			k.woken()
		}
		k.jobs.Finished()
	}
	if n := len(k.jobs.list); n > maxFinishedJobs+2 {
		t.Errorf("%d are kept", n)
	}
	if _, err := k.jobs.find("bg-1"); err == nil {
		t.Error("the first is still known")
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä€😀\n\tx":                           "plain ä€😀\n\tx",
		"\x1b[1;31mred\x1b[0m":                     "red",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx\x1b=y\x1b7z\x1bMw":                "xyzw",
		"\x1b[2J\x1b[?25l":                         "",
		"a\r\nb\rc\r\r\nd":                         "a\nb\nc\n\nd",
		"gr\xfc\xdfe":                              "gr\uFFFDe",
		"a\x00\x00b":                               "a\uFFFDb",
		"bell\a back\b form\f del\x7f":             "bell back form del",
		"\u009b31mx":                               "31mx",
		"cut \xe2\x82":                             "cut \uFFFD",
		"\x1b]never ends\nnext line":               "\nnext line",
		"\x1b[12\nx":                               "\nx",
		"\x1b\x1b[1mx":                             "x",
		"</mail>":                                  "</mail>",
	} {
		var c cleaner
		same(t, fmt.Sprintf("%q", in), string(c.finish(c.clean(nil, []byte(in)))), want)
	}
}

// TestCleanInPieces: where a write ends changes nothing, and nothing harmful gets through.
func TestCleanInPieces(t *testing.T) {
	piece := rapid.OneOf(rapid.Just("\x1b["), rapid.Just("\x1b]0;"), rapid.Just("31m"), rapid.Just("\r"),
		rapid.Just("\n"), rapid.Just("€"),
		rapid.Just("\x1b"), rapid.Just("\a"), rapid.Just("\\"), rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		var one, many cleaner
		want := one.finish(one.clean(nil, []byte(whole)))
		var got []byte
		for rest := []byte(whole); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got = many.clean(got, rest[:n])
			rest = rest[n:]
		}
		got = many.finish(got)
		if !bytes.Equal(got, want) {
			t.Fatalf("in pieces %q, at once %q", got, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range string(got) {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("a control character: %q", got)
			}
		}
	})
}

// TestOutputOfAnySize: everything up to the limit; of more, a beginning, an end, and a file with the whole.
func TestOutputOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := require.Value(os.MkdirTemp("", "output"))(t)
		defer os.RemoveAll(dir)
		line := rapid.SampledFrom([]string{"a line\n", "ä€😀\n", strings.Repeat("long ", 5000) + "\n", "x"}).Draw(t, "line")
		lines := rapid.SampledFrom([]int{0, 1, 100, 7000, 20_000}).Draw(t, "lines")
		if len(line) > 1000 {
			lines /= 1000
		}
		whole := strings.Repeat(line, lines)
		out := NewOutput(filepath.Join(dir, "outputs"), "bash")
		for piece := range slices.Chunk([]byte(whole), rapid.SampledFrom([]int{1000, 4096, 1 << 20}).Draw(t, "step")) {
			if m, err := out.Write(piece); m != len(piece) || err != nil {
				t.Fatal(m, err)
			}
		}
		out.Done()
		got := out.Text()
		if utf8.RuneCountInString(got) > tool.MaxOutput || !utf8.ValidString(got) {
			t.Fatalf("%d characters", utf8.RuneCountInString(got))
		}
		last := out.Last(3)
		if want := strings.Split(strings.TrimRight(whole, "\n"), "\n"); len(line) < 100 && line != "x" &&
			last != strings.Join(want[max(0, len(want)-3):], "\n") {
			t.Fatalf("last lines %q", last)
		}
		if out.Path() == "" {
			if got != whole {
				t.Fatal("something is missing, and no file has it")
			}
			return
		}
		data, err := os.ReadFile(out.Path())
		if err != nil || string(data) != whole {
			t.Fatalf("%d bytes in the file, %d were written, error %v", len(data), len(whole), err)
		}
		head, rest, ok := strings.Cut(got, "\n... ")
		_, tail, ok2 := strings.Cut(rest, " ...\n")
		if !ok || !ok2 || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(tail) < 10_000 ||
			len(head) < 10_000 {
			t.Fatalf("beginning of %d bytes, end of %d", len(head), len(tail))
		}
		if want := fmt.Sprintf("%d of %d characters cut here; the whole is in %s",
			utf8.RuneCountInString(whole)-utf8.RuneCountInString(head)-utf8.RuneCountInString(tail),
			utf8.RuneCountInString(whole), out.Path()); !strings.HasPrefix(rest, want) {
			t.Fatalf("said: %.200s\nwant: %s", rest, want)
		}
	})
}

// TestOutputIsBounded: neither memory nor the file grow with what is printed.
func TestOutputIsBounded(t *testing.T) {
	const most = 4 << 20
	out := NewOutput(t.TempDir(), "bash")
	out.maxFileBytes = most
	block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16/16)
	if n := testing.AllocsPerRun(2*most/len(block), func() { _, _ = out.Write(block) }); n > 10 {
		t.Errorf("%f allocations for each write", n)
	}
	out.Done()
	if fi, err := os.Stat(out.Path()); err != nil || fi.Size() != most {
		t.Errorf("the file has %d bytes, error %v", fi.Size(), err)
	}
	if got := out.Text(); !strings.Contains(got, "characters cut here; the first 4194 KB are in "+out.Path()+" ...") {
		t.Errorf("%.100s ... %s", got, got[len(got)/2-200:len(got)/2+200])
	}
}

func TestOutputWithoutAFile(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	out := NewOutput(blocked, "bash")
	fmt.Fprint(out, strings.Repeat("x\n", 60_000))
	out.Done()
	if got := out.Text(); !strings.Contains(got, "the whole could not be kept: mkdir "+blocked) || out.Path() != "" {
		t.Errorf("%s", got[len(got)/2-200:len(got)/2+200])
	}
}
