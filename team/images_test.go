package team_test

import (
	"strings"
	"testing"
	"time"

	"muster/team"
)

// A member whose model takes no images reads so in place of seeing one. Config.NoImages gets the names of Config.Model.
func TestImagesOnlyForModelsThatTakeThem(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("logo.png", "\x89PNG\r\n\x1a\nand so on")
		h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: coder, prompt: look, model: eyes}}, {read_file: {path: logo.png}}]
    - do: [{wait: {}}]
    - say: Done.
  amy:
    - do: [{read_file: {path: logo.png}}]
    - say: Seen.
`, func(c *team.Config) {
			c.ModelName = "words"
			c.NoImages = func(name string) bool { return name == "" }
		}).ends(0, time.Hour)
		const note = "logo.png is an image (image/png, 17 bytes), and your model takes no images"
		h.heard("lead", note, 1)
		h.heard("amy", note, 0)
		if said := h.said("amy"); !strings.Contains(said, `"type":"image"`) {
			t.Errorf("amy has not seen the image: %s", said)
		}
	})
}
