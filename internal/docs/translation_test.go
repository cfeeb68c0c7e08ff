package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
)

// translated is the end of the name of a page in Chinese. Its commands are those of the English page, which are run.
const translated = ".zh-CN.md"

// TestTranslations checks that a translated page has the commands, the files and the output of its English page, that
// each of the two links to the other, and that both have as many headings.
func TestTranslations(t *testing.T) {
	count := 0
	for _, path := range pages(t) {
		if !strings.HasSuffix(path, translated) {
			continue
		}
		count++
		english := strings.TrimSuffix(path, translated) + ".md"
		name := filepath.Base(path)
		want, got := read(t, english), read(t, path)
		for _, blocks := range [][]block{want, got} {
			for i := range blocks {
				blocks[i].at = "" // the lines differ
			}
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(block{})); d != "" {
			t.Errorf("%s has other commands than the English page:\n%s", name, d)
		}
		if here, there := headings(t, english), headings(t, path); here != there {
			t.Errorf("%s has %d headings, the English page %d", name, there, here)
		}
		for page, other := range map[string]string{english: name, path: filepath.Base(english)} {
			if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), "("+other+")") {
				t.Errorf("%s does not link to %s (%v)", filepath.Base(page), other, err)
			}
		}
	}
	if count < 2 {
		t.Errorf("%d translated pages found: the test looks at the wrong place", count)
	}
}

func headings(t *testing.T, path string) int {
	t.Helper()
	data := require.Value(os.ReadFile(path))(t)
	return strings.Count("\n"+string(data), "\n## ")
}
