package frontmatter

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"no head":                 `[] "no head"`,
		"---\nname: a\n---\nbody": `[name=a] "body"`,
		"\ufeff---\r\nName: 'a b'\r\n---\r\nbody":        `[name=a b] "body"`,
		"---\nname: a: b\ntools: Read, Bash(x y)\n---\n": `[name=a: b tools=Read, Bash(x y)] ""`,
		"---\nname: a\nno end":                           `[] "---\nname: a\nno end"`,
		"---\n- a\n- b\n---\nbody":                       `[] "body"`,
	} {
		f, body := Split(text)
		var fields []string
		for _, name := range []string{"name", "tools"} {
			if f.Text(name) != "" {
				fields = append(fields, name+"="+f.Text(name))
			}
		}
		if got := fmt.Sprintf("%v %q", fields, body); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestHostileHead: a head that stands for far more than it says is read like any other, or line by line.
func TestHostileHead(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for what, head := range map[string]string{"aliases": laughs, "depth": "a: " + strings.Repeat("[", 100_000),
		"itself": "a: &a [*a]\n", "merge": "a: &a {b: 1}\n<<: *a\n"} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f, _ := Split("---\nname: n\n" + head + "\n---\nbody")
			_ = f.Text("a11")
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: no end", what)
		}
	}
}
