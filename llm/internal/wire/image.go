package wire

import (
	"encoding/base64"
	"net/http"
	"slices"

	"muster/llm"
	"muster/llm/catalogue"
)

// maxImage is how many bytes an image may have as base64. Anthropic takes no more, and others take it.
const maxImage = 5 << 20

// imageTypes are the types of images that all vendors take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Images returns ps, those in results too, with a note in place of each image that the model's server would refuse:
// every request with it would fail. The type of the others is the one that their content has. Images without content
// are left out.
func Images(ps []llm.Part, known catalogue.Model) []llm.Part {
	out := make([]llm.Part, 0, len(ps))
	for _, p := range ps {
		switch q := p.(type) {
		case llm.Image:
			media := http.DetectContentType(q.Data)
			switch {
			case len(q.Data) == 0:
				continue
			case known.Name != "" && !known.Images:
				p = llm.Text{Text: "(an image was here; this model takes no images)"}
			case base64.StdEncoding.EncodedLen(len(q.Data)) > maxImage:
				p = llm.Text{Text: "(an image was here; it has more than 3.9 MB, which is the most)"}
			case !slices.Contains(imageTypes, media):
				p = llm.Text{Text: "(an image was here; it is none of PNG, JPEG, GIF and WebP)"}
			default:
				q.Media = media
				p = q
			}
		case llm.Result:
			q.Parts = Images(q.Parts, known)
			p = q
		}
		out = append(out, p)
	}
	return out
}
