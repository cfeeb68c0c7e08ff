package hostile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/llm/llmtest"
	"muster/llm/script"
)

// No key of the user's reaches a command, a file, a commit, the terminal or another server.
func TestKeys(t *testing.T) {
	runTable(t, "keys", map[string]command{"clean": clean, "server": server})
}

// clean SECRET... checks that none of the secrets is in what the last program printed, or in a file below $WORK: the
// repository, its objects, the team's state, lanes, logs, temporary files and the user's directories. Not looked at
// are the script's own files, which lie in $WORK itself, and $WORK/in. A secret is looked for as it is, in URLs, in
// base64 and by its first 16 bytes.
func clean(ts *testscript.TestScript, _ bool, args []string) {
	for _, secret := range args {
		forms := []string{secret, secret[:min(len(secret), 16)], base64.StdEncoding.EncodeToString([]byte(secret))[:10]}
		look := func(where string, data []byte) {
			for _, form := range forms {
				if bytes.Contains(data, []byte(form)) {
					i := bytes.Index(data, []byte(form))
					ts.Fatalf("%s has %q: %q", where, form, data[max(0, i-100):min(len(data), i+100)])
				}
			}
		}
		look("stdout", []byte(ts.ReadFile("stdout")))
		look("stderr", []byte(ts.ReadFile("stderr")))
		work := ts.Getenv("WORK")
		ts.Check(filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path == filepath.Join(work, "in"):
				return fs.SkipDir
			case d.Name() == ".git" && d.IsDir():
				cmd := exec.Command("git", "--git-dir", path, "cat-file", "--batch-all-objects", "--batch")
				out, err := cmd.Output()
				look("the objects of "+path, out)
				if strings.Contains(path, filepath.Join(".cache", "muster", "checks")) {
					return nil // a check may have been cut off there: its files are looked at as they are
				}
				return err
			case !d.Type().IsRegular() || filepath.Dir(path) == work:
				return nil
			}
			data, err := os.ReadFile(path)
			look(path, data)
			return err
		}))
	}
}

// server HOW [FILE] starts a server of models and sets SERVER to its URL. Its requests are appended to
// $WORK/in/requests. What it does depends on HOW:
//
//   - script: it answers as the script FILE says; what the script says may be about the key that it was sent.
//   - status CODE: it refuses each request with the code, and quotes all headers of the request, also in base64.
//   - plain CODE: the same, as plain text in one long line.
//   - redirect: it redirects to a URL with the key in it.
//   - secure CODE: as status, by HTTP/2. CERTIFICATE is the file of its certificate.
//   - stream: it answers in a stream of Chat Completions with the key of its request, three bytes at a time.
//   - error: it begins a stream and ends it with an error that quotes the headers.
func server(ts *testscript.TestScript, _ bool, args []string) {
	in := filepath.Join(ts.Getenv("WORK"), "in")
	ts.Check(os.MkdirAll(in, 0o700))
	var model http.Handler
	if args[0] == "script" {
		s, err := script.Load(ts.MkAbs(args[1]))
		ts.Check(err)
		model = llmtest.Handler(s.Model())
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var headers bytes.Buffer
		_ = r.Header.Write(&headers)
		note := fmt.Sprintf("%s %s\n%s\n%s\n", r.Method, r.URL, headers.String(),
			base64.StdEncoding.EncodeToString(headers.Bytes()))
		f, err := os.OpenFile(filepath.Join(in, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(note)
			_ = f.Close()
		}
		quoted, _ := json.Marshal("no: " + note)
		code := http.StatusUnauthorized
		if len(args) > 1 {
			_, _ = fmt.Sscan(args[1], &code)
		}
		switch args[0] {
		case "script":
			model.ServeHTTP(w, r)
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			for piece := range slices.Chunk([]byte("it is "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+"."), 3) {
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece)
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		case "status", "secure":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":%s}}`, quoted)
		case "plain":
			w.WriteHeader(code)
			fmt.Fprint(w, strings.Repeat("x", 270), strings.ReplaceAll(note, "\r\n", " "))
		case "redirect":
			http.Redirect(w, r, "https://elsewhere.example/"+r.Header.Get("X-Api-Key")+"/?key="+r.Header.Get("X-Api-Key"), http.StatusTemporaryRedirect)
		case "error":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":%s}}\n\n", quoted)
		}
	}))
	if args[0] == "secure" {
		s.EnableHTTP2 = true
		s.StartTLS()
		file := filepath.Join(in, "certificate.pem")
		block := pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
		ts.Check(os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
		ts.Setenv("CERTIFICATE", file)
	} else {
		s.Start()
	}
	ts.Defer(s.Close)
	ts.Setenv("SERVER", s.URL)
	ts.Setenv("SERVER_HOST", strings.TrimPrefix(s.URL, "http://"))
}
