//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/tier"
)

// seer looks at the file whose place the message says.
const seer = `
speakers:
  lead:
    - cue: '@shot.png as I have it is not in your checkout: read_file (?P<path>/\S+\.png)\)'
      do: [{read_file: {path: "${path}"}}]
    - cue: 'shot.png: image/png'
      say: It is red.
`

// TestAnImageIsNamed names an image that is in no commit: the lead finds a copy of it, and every vendor's API gets its
// bytes.
func TestAnImageIsNamed(t *testing.T) {
	tier.All(t)
	t.Parallel()
	shot := image.NewRGBA(image.Rect(0, 0, 2, 2))
	shot.Set(0, 0, color.RGBA{255, 0, 0, 255})
	var data bytes.Buffer
	if err := png.Encode(&data, shot); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]func(url string) []string{
		"chat":      func(url string) []string { return []string{"--model", "openai/stand-in@" + url + "/v1"} },
		"responses": func(url string) []string { return []string{"--model", "openai-responses/stand-in@" + url + "/v1"} },
		"anthropic": func(string) []string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serve(t, seer)
			var env []string
			if name == "anthropic" {
				env = []string{"ANTHROPIC_API_KEY=key-a", "ANTHROPIC_BASE_URL=" + r.url}
			}
			w := newWorld(t, env...)
			w.write(filepath.Join(w.root, "shot.png"), data.String())
			out := w.startWith(strings.NewReader("what is in @shot.png?\n"), flags(r.url)...).ends(0)
			w.has("what the lead says", out.stdout, "It is red.")
			r.mu.Lock()
			defer r.mu.Unlock()
			bodies := r.bodies["lead"]
			if last := bodies[len(bodies)-1]; !bytes.Contains(last, []byte(base64.StdEncoding.EncodeToString(data.Bytes()))) {
				t.Errorf("the image is not in the last of %d requests: %.3000s", len(bodies), last)
			}
		})
	}
}
