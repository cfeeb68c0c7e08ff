package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// Only sockets that listen are servers, and not the connections of a program.
func TestListening(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "net"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "net", "tcp"), []byte(`  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:6DDB 00000000:0000 0A 00000000:00000000
   1: 0100007F:B2C4 0100007F:6DDB 01 00000000:00000000
   2: 0100007F:B2C6 0100007F:6DDB 06 00000000:00000000
`), 0o600))
	if got := listening(dir, "tcp"); !slices.Equal(got, []int{28123}) {
		t.Errorf("it listens at %v", got)
	}
}

// connect connects to a server. It returns the user's end and, later, what Connect returns.
func connect(ctx context.Context, t *testing.T, s Server) (*net.TCPConn, <-chan error) {
	t.Helper()
	near, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer near.Close()
	client, err := net.Dial("tcp", near.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	passed, err := near.Accept()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		defer passed.Close()
		ended <- s.Connect(ctx, passed.(*net.TCPConn))
	}()
	return client.(*net.TCPConn), ended
}

// What confined programs serve on their own loopback is found by the directory that they work in, each once, and
// reached; nobody reaches it without.
func TestServersOfASandbox(t *testing.T) {
	tier.Needs(t, "/usr/bin/python3") // as the confined program finds it
	m, l := findNamespaces(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	const script = `import http.server, os, signal, socket, threading
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(); self.send_response(200); self.end_headers(); self.wfile.write(b"hello " + self.path.encode())
class Six(http.server.HTTPServer): address_family = socket.AF_INET6
if os.fork() == 0: signal.pause()
servers = [http.server.HTTPServer(("127.0.0.1", 28123), Hello)]
try: servers += [Six(("::1", 28123), Hello), Six(("::1", 28122), Hello)]
except OSError: pass # a machine without IPv6
for s in servers: threading.Thread(target=s.serve_forever).start()
open("new", "w").write("".join(sorted({"%d python3\n" % s.server_port for s in servers})))
os.rename("new", "all")`
	s := proc.Spec{Argv: []string{"python3", "-c", script}, Dir: dir + "/sub", Env: []string{"PATH=/usr/bin:/bin"}}
	p, err := m.Start(t.Context(), l, s, append(System(), Rule{Path: dir, Access: Write}))
	require.NoError(t, err)
	var want []byte
	wait.For(t, "the server listens", func() bool {
		want, _ = os.ReadFile(filepath.Join(dir, "sub", "all"))
		return len(want) > 0
	})
	all := Servers(dir)
	var got string
	for _, s := range all {
		got += fmt.Sprintf("%d %s\n", s.Port, s.Program)
	}
	if got != string(want) {
		t.Fatalf("found\n%s\nand not\n%s", got, want)
	}
	// A server of the user's is reached without, and beside the directory or below it nothing works.
	defer httptest.NewServer(nil).Close()
	here, _ := os.Getwd()
	for _, dir := range []string{here, filepath.Join(dir, "su"), filepath.Join(dir, "sub", "x")} {
		if all := Servers(dir); len(all) > 0 {
			t.Errorf("in %s: %+v", dir, all)
		}
	}
	if c, err := net.Dial("tcp", "127.0.0.1:28123"); err == nil {
		_ = c.Close()
		t.Error("it listens on the loopback of the user")
	}
	for _, s := range all {
		client, ended := connect(t.Context(), t, s)
		_, err = io.WriteString(client, "GET /there HTTP/1.0\r\n\r\n") // it answers at the end of the input
		require.NoError(t, errors.Join(err, client.CloseWrite(), client.SetDeadline(time.Now().Add(time.Minute))))
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		if body, err := io.ReadAll(answer.Body); string(body) != "hello /there" {
			t.Errorf("%q, %v", body, err)
		}
		require.NoError(t, <-ended)
	}
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, unheard := connect(t.Context(), t, Server{Port: 9, PID: all[0].PID})
	_, interrupted := connect(given, t, all[0])
	if err, late := <-unheard, <-interrupted; !strings.Contains(fmt.Sprint(err), "nothing answers") || late != nil {
		t.Errorf("where nothing listens: %v; an interruption: %v", err, late)
	}
	_ = p.Kill()
	_, _ = p.Wait()
	if all := Servers(dir); len(all) > 0 {
		t.Errorf("after its end: %+v", all)
	}
	_, ended := connect(t.Context(), t, all[0])
	if err := <-ended; !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("to one that has ended: %v", err)
	}
}
