package view

import (
	"cmp"

	"muster/internal/text"
)

// Windows lists how full the windows of the members' models are, one member a row.
func Windows(all []Window) Table {
	// The share is what people look for; the tokens say how far it is to the next shortening.
	t := Table{Titles: []string{"CONTEXT", "MODEL", ">TOKENS", ">OF", ">SHARE"}, Wide: 1, Least: []int{3, 2}}
	for _, w := range all {
		t.Row(Named(w.Member), Text(cmp.Or(text.OneLine(w.Model), "no model yet")), tokens(float64(w.Tokens)),
			tokens(float64(w.Window)), percent(w.Tokens, w.Window))
	}
	return t
}
