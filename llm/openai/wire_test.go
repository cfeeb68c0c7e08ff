package openai_test

import (
	gocmp "cmp"
	"encoding/json"
	"net/http"
	"strings"

	"muster/llm"
	"muster/llm/internal/wiretest"
	"muster/llm/openai"
)

// server is one without sockets.
type server struct{ wiretest.Vendor }

func serve(answer http.HandlerFunc) *server { return &server{wiretest.Vendor{Answer: answer}} }

// model is one at the server, as at any that is not the vendor's.
func (v *server) model(o openai.Options) llm.Model {
	o.BaseURL, o.Client, o.Model = "http://server/v1", &http.Client{Transport: v}, gocmp.Or(o.Model, "qwen")
	return openai.New(o)
}

// vendor is a model at the vendor's endpoint, which v plays.
func (v *server) vendor(o openai.Options) llm.Model {
	o.Client, o.Model = &http.Client{Transport: v}, gocmp.Or(o.Model, "gpt-5.5")
	return openai.New(o)
}

// streams answers with nothing to say, by the API that is asked.
func streams(w http.ResponseWriter, r *http.Request) {
	body := completion("stop")
	if strings.HasSuffix(r.URL.Path, "/responses") {
		body = response(completed, "")
	}
	wiretest.Stream(body)(w, r)
}

func input(s string) json.RawMessage { return json.RawMessage(s) }

func shown(ds []llm.Delta) (text, think string) {
	for _, d := range ds {
		text += d.Text
		think += d.Think
	}
	return text, think
}
