package team_test

import (
	"strings"
	"testing"

	"muster/team"
)

// A member whose model takes no images reads so in place of seeing one. Config.NoImages gets the names of Config.Model.
func TestImagesOnlyForModelsThatTakeThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("logo.png", "\x89PNG\r\n\x1a\nand so on")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "logo")
	w.run(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: coder, prompt: look, model: eyes}}, {read_file: {path: logo.png}}]
    - do: [{wait: {}}]
    - say: Done.
  amy:
    - do: [{read_file: {path: logo.png}}]
    - say: Seen.
`, 0, func(c *team.Config) {
		c.ModelName = "words"
		c.NoImages = func(name string) bool { return name == "" }
	})
	const note = "logo.png is an image (image/png, 17 bytes), and your model takes no images"
	if said := w.said("lead"); !strings.Contains(said, note) {
		t.Errorf("the lead is not told: %s", said)
	}
	if said := w.said("amy"); strings.Contains(said, note) || !strings.Contains(said, `"type":"image"`) {
		t.Errorf("amy has not seen the image: %s", said)
	}
}
