package sandbox

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

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

// What a confined program serves on its own loopback is found by the directory that it works in, and reached; nobody
// reaches it without.
func TestServersOfASandbox(t *testing.T) {
	tier.Needs(t, "python3")
	m, l := findNamespaces(t)
	dir := t.TempDir()
	const script = `import http.server
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(); self.send_response(200); self.end_headers(); self.wfile.write(b"hello " + self.path.encode())
http.server.HTTPServer(("127.0.0.1", 28123), Hello).serve_forever()`
	if all := Servers(dir); len(all) > 0 {
		t.Errorf("before anything runs: %+v", all)
	}
	s := proc.Spec{Argv: []string{"python3", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}}
	p, err := m.Start(t.Context(), l, s, append(System(), Rule{Path: dir, Access: Write}))
	require.NoError(t, err)
	var all []Server
	wait.For(t, "the server listens", func() bool { all = Servers(dir); return len(all) > 0 })
	if len(all) != 1 || all[0].Port != 28123 || all[0].Program != "python3" {
		t.Errorf("%+v", all)
	}
	if c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(all[0].Port)); err == nil {
		_ = c.Close()
		t.Error("it listens on the loopback of the user")
	}
	near, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer near.Close()
	client, err := net.Dial("tcp", near.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	passed, err := near.Accept()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		err := all[0].Connect(t.Context(), passed.(*net.TCPConn))
		_ = passed.Close()
		ended <- err
	}()
	_, err = io.WriteString(client, "GET /there HTTP/1.0\r\n\r\n") // it answers at the end of the input
	require.NoError(t, errors.Join(err, client.(*net.TCPConn).CloseWrite(), client.SetDeadline(time.Now().Add(20*time.Second))))
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "hello /there" {
		t.Errorf("%q, %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = p.Kill()
	_, _ = p.Wait()
	if all := Servers(dir); len(all) > 0 {
		t.Errorf("after its end: %+v", all)
	}
}
