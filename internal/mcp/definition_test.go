package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// environ returns a lookup in some variables.
func environ(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := set[name]; return value, ok }
}

// TestPublishedShapes reads definitions in the forms in which people publish them.
func TestPublishedShapes(t *testing.T) {
	lookup := environ(map[string]string{"TOKEN": "tok-4711-abcdef", "EMPTY": "", "HOST": "mcp.example.com"})
	for name, c := range map[string]struct {
		definition string
		want       Server
	}{
		"program": {`{"command":"npx","args":["-y","server-x"],"env":{"PORT":8080,"DEBUG":true}}`,
			Server{Command: []string{"npx", "-y", "server-x"}, Env: map[string]string{"PORT": "8080", "DEBUG": "true"}}},
		"type stdio": {`{"type":"stdio","command":"./run.sh","args":[],"alwaysAllow":["a"]}`,
			Server{Command: []string{"./run.sh"}}},
		"http": {`{"type":"http","url":"https://${HOST}/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}`,
			Server{URL: "https://mcp.example.com/mcp", Header: map[string]string{"Authorization": "Bearer tok-4711-abcdef"}}},
		"default": {`{"command":"${RUNNER:-uvx}","args":["${EMPTY:-x}","$TOKEN","${not a name}","${TOKEN"]}`,
			Server{Command: []string{"uvx", "", "$TOKEN", "${not a name}", "${TOKEN"}}},
		"lists":  {`{"command":"a","tools":["get_*"],"exclude":["get_env"]}`, Server{Command: []string{"a"}, Tools: []string{"get_*"}, Exclude: []string{"get_env"}}},
		"millis": {`{"command":"a","timeout":5000}`, Server{Command: []string{"a"}, Timeout: 5 * time.Second}},
		"unset": {`{"command":"a","args":["${A}","${B}","${A}"]}`, Server{Command: []string{"a", "", "", ""},
			Problem: "your environment does not set A, B"}},
		"sse": {`{"type":"sse","url":"https://x.example/sse"}`, Server{URL: "https://x.example/sse",
			Problem: "the transport sse is not supported: most such servers have streamable HTTP too (type: http)"}},
		"disabled": {`{"command":"a","disabled":true}`, Server{Command: []string{"a"}, Problem: "its definition says that it is disabled"}},
		"neither":  {`{}`, Server{Problem: "it has neither a command nor a URL"}},
		"both":     {`{"command":"a","url":"https://x.example"}`, Server{Command: []string{"a"}, URL: "https://x.example", Problem: "it has a command and a URL, and can have only one of them"}},
		"scheme":   {`{"url":"file:///etc/passwd"}`, Server{URL: "file:///etc/passwd", Problem: "its URL is not one of http or https"}},
		"kind":     {`{"command":["a","b"]}`, Server{Problem: "the value of command in its definition is of a wrong kind (array)"}},
		"time":     {`{"command":"a","timeout":"soon"}`, Server{Command: []string{"a"}, Timeout: -1, Problem: "its time limit is not a duration such as 30s"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Parse("s", "f", []byte(c.definition), false, lookup)
			if c.want.Timeout == 0 && name != "kind" {
				c.want.Timeout = defaultTimeout
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Server{}),
				cmpopts.IgnoreFields(Server{}, "Name", "File", "Text")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the user is asked to trust has the names of variables, whatever their values are, and is the same for another
// order of fields. What changes the meaning changes it.
func TestTextIsCanonical(t *testing.T) {
	const definition = `{"url": "https://x.example/${P}", "headers": {"X-Key": "${TOKEN}", "A": "<b>"}}`
	first := Parse("s", "f", []byte(definition), false, environ(map[string]string{"P": "1", "TOKEN": "secret-4711"}))
	other := Parse("s", "f", []byte(`{"headers":{"A":"<b>","X-Key":"${TOKEN}"},"url":"https://x.example/${P}"}`), false, environ(nil))
	if first.Text != other.Text || strings.Contains(first.Text, "secret") || !strings.Contains(first.Text, `"X-Key": "${TOKEN}"`) {
		t.Errorf("%s\n%s", first.Text, other.Text)
	}
	changed := Parse("s", "f", []byte(strings.Replace(definition, "x.example", "y.example", 1)), false, environ(nil))
	if changed.Text == first.Text {
		t.Error("another URL has the same text")
	}
}

// Whatever a definition takes from the environment for a header is hidden, and so is what looks like a key elsewhere.
func TestSecretsOfDefinitions(t *testing.T) {
	lookup := environ(map[string]string{"PLAIN": "plain-value-4711", "KEY": "key-value-4711"})
	s := Parse("s", "f", []byte(`{"url":"https://u:pass-4711@x.example/","headers":{"X-Any":"${PLAIN}","Authorization":"Bearer lit-4711"}}`), false, lookup)
	p := Parse("s", "f", []byte(`{"command":"a","args":["--token","arg-4711"],"env":{"API_KEY":"${KEY}","MODE":"fast"}}`), false, lookup)
	all := strings.Join(append(s.Secrets(), p.Secrets()...), " ")
	for _, want := range []string{"plain-value-4711", "lit-4711", "pass-4711", "arg-4711", "key-value-4711"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not among %s", want, all)
		}
	}
	if strings.Contains(all, "fast") {
		t.Errorf("an ordinary value is hidden: %s", all)
	}
}

// Files for muster are strict, and other agents' files may have anything.
func TestOurFilesAreStrict(t *testing.T) {
	const definition = `{"comand":"a","timeout":3}`
	if s := Parse("s", "f", []byte(definition), true, environ(nil)); !strings.Contains(s.Problem, `unknown field "comand"`) {
		t.Error(s.Problem)
	}
	if s := Parse("s", "f", []byte(`{"command":"a","timeout":3}`), true, environ(nil)); s.Timeout != 3*time.Second {
		t.Error(s.Timeout)
	}
	if _, err := ParseFile(".mcp.json", []byte(`{"mcpServers":[]}`), environ(nil)); err == nil {
		t.Error("a list is no mapping of servers")
	}
	all, err := ParseFile(".mcp.json", []byte("\xef\xbb\xbf"+`{"mcpServers":{"b":{"command":"x"},"a":{"command":5}},"other":1}`), environ(nil))
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[0].Problem == "" || all[1].Problem != "" {
		t.Errorf("%+v, %v", all, err)
	}
}
