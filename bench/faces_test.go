//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// face is a program on a terminal of its own, and all that it has written there.
type face struct {
	tb      testing.TB
	command *exec.Cmd
	master  *os.File

	mu      sync.Mutex
	written bytes.Buffer
	grown   chan struct{} // has a token after more was written
}

func (w *world) startFace(args ...string) *face {
	w.tb.Helper()
	master := need(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(w.tb)
	fd := int(master.Fd())
	must(w.tb, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := need(unix.IoctlGetInt(fd, unix.TIOCGPTN))(w.tb)
	must(w.tb, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}))
	slave := need(os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0))(w.tb)
	defer slave.Close()
	f := &face{tb: w.tb, command: w.command(muster, args...), master: master, grown: make(chan struct{}, 1)}
	f.command.Env = append(f.command.Env, "TERM=xterm-256color")
	f.command.Stdin, f.command.Stdout, f.command.Stderr = slave, slave, slave
	f.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(w.tb, f.command.Start())
	go f.read()
	w.tb.Cleanup(f.kill)
	return f
}

func (f *face) read() {
	part := make([]byte, 64<<10)
	for {
		n, err := f.master.Read(part)
		f.mu.Lock()
		f.written.Write(part[:n])
		f.mu.Unlock()
		select {
		case f.grown <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// kill ends the program, if it has not ended. Its end of the terminal is closed then, which ends read.
func (f *face) kill() {
	_ = f.command.Process.Kill()
	_ = f.command.Wait()
}

func (f *face) waits(text string) time.Time {
	f.tb.Helper()
	late := time.After(time.Minute)
	for {
		f.mu.Lock()
		all := bytes.Clone(f.written.Bytes())
		f.mu.Unlock()
		if bytes.Contains(all, []byte(text)) {
			return time.Now()
		}
		select {
		case <-f.grown:
		case <-late:
			f.tb.Fatalf("%s has not written %q:\n%q", strings.Join(f.command.Args, " "), text, all[max(len(all)-2000, 0):])
		}
	}
}

// reads opens the address that muster web has printed, as a browser does: the page, then the state, which must have so
// many tasks.
func (f *face) reads(tasks int) error {
	f.mu.Lock()
	address := regexp.MustCompile(`http://\S+`).Find(f.written.Bytes())
	f.mu.Unlock()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := http.Client{Jar: jar}
	var state struct{ Tasks []json.RawMessage }
	for _, path := range []string{string(address), "/api/state"} {
		url, err := url.Parse(string(address))
		if err != nil {
			return err
		}
		answer, err := client.Get(url.ResolveReference(need(url.Parse(path))(f.tb)).String())
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %w", path, answer.Status, err)
		}
		if path == "/api/state" {
			if err := json.Unmarshal(data, &state); err != nil {
				return err
			}
		}
	}
	if len(state.Tasks) != tasks {
		return fmt.Errorf("%d tasks, not %d", len(state.Tasks), tasks)
	}
	return nil
}

func (f *face) cpu() float64 {
	stat := string(need(os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.command.Process.Pid)))(f.tb))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	user, system := need(strconv.Atoi(fields[11]))(f.tb), need(strconv.Atoi(fields[12]))(f.tb)
	return float64(user+system) * 10 // a tick is 10 ms
}

// BenchmarkFaces is how soon the faces show something, on a board of 1,000 tasks with 10,000 events, and what they take
// while nothing happens.
func BenchmarkFaces(b *testing.B) {
	const tasks, idle = 1_000, 10 * time.Second
	w := newWorld(b, 1)
	w.board(tasks)
	w.history(tasks)
	script := filepath.Join(w.base, "words.yaml")
	must(b, os.WriteFile(script, []byte("speakers:\n  lead:\n    - say: Yes.\n"), 0o600))
	var watch, talk, page, version samples
	for range rounds {
		start := time.Now()
		w.muster("version")
		version.took(start)
		start = time.Now()
		f := w.startFace("watch")
		watch.add(ms(f.waits("BOARD 1000").Sub(start)))
		f.kill()
		start = time.Now()
		f = w.startFace("--model", "script/"+script)
		talk.add(ms(f.waits("│\x1b[m >").Sub(start)))
		f.kill()
		start = time.Now()
		f = w.startFace("web", "--no-open")
		f.waits("Ctrl-C ends the page")
		must(b, f.reads(1000))
		page.took(start)
		f.kill()
	}
	beside := func(f figure) figure { f.beside, f.is = version.median(), "`muster version`"; return f }
	report(b, "watch", beside(figure{what: "`muster watch` shows the team, 1,000 tasks", unit: "ms", ours: watch.median(), limit: 150}))
	report(b, "conversation", beside(figure{what: "`muster` shows its prompt, 1,000 tasks", unit: "ms", ours: talk.median(), limit: 80}))
	report(b, "web", beside(figure{what: "`muster web` has answered with the page and its state, 1,000 tasks", unit: "ms",
		ours: page.median(), limit: 150}))
	f := w.startFace("watch")
	f.waits("BOARD 1000")
	<-time.After(2 * time.Second) // what it begins with has been read
	before := f.cpu()
	<-time.After(idle)
	report(b, "idle", figure{what: "CPU of an idle `muster watch`, 1,000 tasks", unit: "ms a second",
		ours: (f.cpu() - before) / idle.Seconds(), limit: 10})
	f.kill()
}
