package docs

import (
	"cmp"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// troubleshooting is the page that quotes messages: those in the first column of its tables are in the source.
const troubleshooting = "docs/troubleshooting.md"

// quoted finds the messages of a table's row. "..." in one stands for what differs.
var quoted = regexp.MustCompile("`([^`]+)`")

// TestMessages checks that each message that the page quotes is in the source, so that who searches for it finds it.
func TestMessages(t *testing.T) {
	data := require.Value(os.ReadFile(filepath.Join(root, troubleshooting)))(t)
	all := readTexts(t)
	count := 0
	for i, line := range strings.Split(string(data), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || cells[1] == " message " {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			count++
			if !hasMessage(all, m[1]) {
				t.Errorf("%s:%d: no message has %q", troubleshooting, i+1, m[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("%d messages found: the test looks at the wrong place", count)
	}
}

// hasMessage reports whether one of the texts has a message of the page. The parts around "..." follow each other in it.
func hasMessage(all []string, message string) bool {
	var parts []string
	for part := range strings.SplitSeq(message, "...") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	for _, text := range all {
		found := len(parts) > 0
		for _, part := range parts {
			_, rest, ok := strings.Cut(text, part)
			if text = rest; !ok {
				found = false
				break
			}
		}
		if found {
			return true
		}
	}
	return false
}

// readTexts returns the texts of the module's strings outside tests. Those that are added to each other are one.
func readTexts(t *testing.T) (all []string) {
	t.Helper()
	walkSource(t, func(_ string, file *ast.File) {
		if file == nil {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			if text := textOf(e); text != "" {
				all = append(all, text)
				return false
			}
			return true
		})
	})
	return all
}

// textOf returns the text of a string, or of several with values between them, for which "..." stands; "" if the
// expression has none.
func textOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		left, right := textOf(x.X), textOf(x.Y)
		if x.Op == token.ADD && left+right != "" {
			return cmp.Or(left, "...") + cmp.Or(right, "...")
		}
	case *ast.ParenExpr:
		return textOf(x.X)
	}
	return ""
}
