package hostile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageNamesItsTests checks that docs/security.md names each table, and that each table and each test that it names
// exists.
func TestThePageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	exists := map[string]bool{}
	for _, path := range tables {
		name := strings.TrimSuffix(filepath.ToSlash(path), ".txtar")
		name = strings.TrimPrefix(name, "testdata/")
		exists[name] = true
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the table %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`((?:states|keys|landing|repositories|limits)/[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !exists[m[1]] {
			t.Errorf("there is no table %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z/]+) (Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		files, _ := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(m[1]), "*_test.go"))
		found := false
		for _, path := range files {
			text, err := os.ReadFile(path)
			found = found || err == nil && strings.Contains(string(text), "func "+m[2]+"(")
		}
		if !found {
			t.Errorf("%s has no %s", m[1], m[2])
		}
	}
}
