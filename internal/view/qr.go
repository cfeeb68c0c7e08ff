package view

import (
	"strings"

	"rsc.io/qr"
)

// margin is the width of the light edge around a QR code, in modules. Readers need it.
const margin = 4

// QR draws a text as a QR code. Each character is two modules, one above the other. The code is black on white whatever
// the colours of the terminal are, so ok is false on a screen without colours, and on one that is too narrow.
func (s Screen) QR(text string) (drawn string, ok bool) {
	code, err := qr.Encode(text, qr.M)
	if err != nil || !s.IsOn() || s.Width < code.Size+2*margin {
		return "", false
	}
	blocks := map[[2]bool]string{{true, true}: "█", {true, false}: "▀", {false, true}: "▄", {false, false}: " "}
	var w strings.Builder
	for y := -margin; y < code.Size+margin; y += 2 {
		// Themes change the first 16 colours, and not these.
		w.WriteString("\x1b[38;5;16;48;5;231m")
		for x := -margin; x < code.Size+margin; x++ {
			w.WriteString(blocks[[2]bool{code.Black(x, y), code.Black(x, y+1)}])
		}
		w.WriteString("\x1b[0m\n")
	}
	return w.String(), true
}
