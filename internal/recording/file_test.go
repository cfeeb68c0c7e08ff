package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/llm"
)

// hideNothing hides nothing.
func hideNothing(line json.RawMessage) json.RawMessage { return line }

// record makes a recording of two turns of a conversation and returns its path.
func record(t *testing.T, key []byte, end *End) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.rec")
	r := require.Value(Create(path, "v0", json.RawMessage("{}"), hideNothing, key))(t)
	require.NoError(t, r.Begin(muster.Run{Goal: "g", Check: "make test", Target: "muster/r"}, "/repository", nil))
	m := r.Model("lead", sayer{})
	messages := []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "hello"}}}}
	for range 2 {
		reply := require.Value(m.Reply(t.Context(), llm.Request{System: []string{"s"}, Messages: messages}, func(llm.Delta) {}))(t)
		messages = append(messages, reply.Message, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "more"}}})
	}
	require.NoError(t, r.Turns().Step(t.Context(), "lead", func() error { return nil }))
	r.Event(muster.Event{Kind: "run.note", At: 2, Fields: map[string]any{"text": "\x1b[2J"}})
	r.Landing(Landing{Task: 1, Commit: "0a1b2c3", Files: []string{"a"}})
	require.NoError(t, r.Close(end))
	return path
}

// sayer is a model that calls bash.
type sayer struct{}

func (sayer) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	return llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
		llm.Call{ID: "1", Name: "bash", Input: []byte(`{"command":"rm x"}`)}}}}, nil
}

// What was recorded is read again, and each call has only what is new in it.
func TestReadWhatWasRecorded(t *testing.T) {
	key := []byte("key")
	path := record(t, key, &End{Code: 3, Text: "left"})
	r := require.Value(Read(path, Verify(key)))(t)
	if !r.IsOwn || r.End == nil || r.End.Code != 3 || r.Run.Goal != "g" || r.Root != "/repository" || len(r.Steps) != 1 ||
		len(r.Events) != 1 || len(r.Landings) != 1 || len(r.Prefixes) != 1 {
		t.Errorf("got %+v", r)
	}
	if len(r.Calls) != 2 || r.Calls[0].Kept != 0 || r.Calls[1].Kept != 1 || len(r.Calls[1].Messages) != 2 ||
		r.Calls[1].Turn != 2 {
		t.Errorf("the calls are %+v", r.Calls)
	}
	if got, want := r.Commands(), []string{"check: make test", `lead bash: {"command":"rm x"}`}; !slices.Equal(got, want) {
		t.Errorf("the commands are %q, want %q", got, want)
	}
}

// Only a file that is whole and has the user's own signature at its end is the user's own.
func TestWhoseRecordingItIs(t *testing.T) {
	key := []byte("key")
	whole := require.Value(os.ReadFile(record(t, key, nil)))(t)
	unsigned := require.Value(os.ReadFile(record(t, nil, nil)))(t)
	for name, c := range map[string]struct {
		data []byte
		key  []byte
		want bool
	}{
		"own":          {whole, key, true},
		"another key":  {whole, []byte("other"), false},
		"no key":       {whole, nil, false},
		"not signed":   {unsigned, key, false},
		"changed":      {bytes.Replace(whole, []byte("rm x"), []byte("rm y"), 1), key, false},
		"a line more":  {append(bytes.Clone(whole), `{"step":{"who":"x","at":1}}`+"\n"...), key, false},
		"a line ahead": {append([]byte("{}\n"), whole...), key, false},
	} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, c.data, 0o600))
		if r, err := Read(path, Verify(c.key)); err == nil && r.IsOwn != c.want || err != nil && c.want {
			t.Errorf("%s: it is the user's own: %v, %v", name, !c.want, err)
		}
	}
}

// A recording that is cut off anywhere is read to the last whole line, or refused; it is never the user's own.
func TestCutOffAnywhere(t *testing.T) {
	key := []byte("key")
	whole := require.Value(os.ReadFile(record(t, key, &End{})))(t)
	first := bytes.IndexByte(whole, '\n') + 1
	for n := range whole {
		r, _, err := parse(whole[:n], Verify(key))
		if (err == nil) != (n >= first) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err == nil && r.IsOwn {
			t.Fatalf("%d bytes are the user's own", n)
		}
	}
}

// Lines that make no sense are refused, with their number.
func TestRefuseNonsense(t *testing.T) {
	const head = `{"muster_recording":{"version":1,"run":{}}}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "1: "},
		"no JSON":         {"hello\n", "1: "},
		"no header":       {`{"step":{"who":"a"}}` + "\n", "1: "},
		"another version": {`{"muster_recording":{"version":2}}` + "\n", "another version"},
		"two headers":     {head + head, "2: "},
		"a turn below 1":  {head + `{"prefix":{"id":"p"}}` + "\n" + `{"call":{"turn":-1,"prefix":"p","reply":{}}}` + "\n", "3: "},
		"kept below 0": {head + `{"prefix":{"id":"p"}}` + "\n" +
			`{"call":{"turn":1,"kept":-9,"prefix":"p","reply":{}}}` + "\n", "3: "},
		"no prefix":      {head + `{"call":{"turn":1,"prefix":"q","reply":{}}}` + "\n", "2: "},
		"reply or error": {head + `{"prefix":{"id":"p"}}` + "\n" + `{"call":{"turn":1,"prefix":"p"}}` + "\n", "3: "},
		"unknown part": {head + `{"prefix":{"id":"p"}}` + "\n" +
			`{"call":{"turn":1,"prefix":"p","messages":[{"parts":[{"type":"x"}]}],"reply":{}}}` + "\n", "3: "},
	} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		if _, err := Read(path, Verify(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), Verify(nil)); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A file that exists is never written over.
func TestNothingIsOverwritten(t *testing.T) {
	path := record(t, nil, nil)
	if _, err := Create(path, "v0", nil, hideNothing, nil); err == nil {
		t.Error("the file was taken")
	}
}
