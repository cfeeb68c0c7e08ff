package view

import (
	"strings"
	"testing"

	"rsc.io/qr"

	"muster/internal/testing/require"
)

// What is drawn has the modules of the code, with a light edge around them, on a terminal of any colours.
func TestQR(t *testing.T) {
	t.Parallel()
	const address = "http://192.168.100.123:45678/?pair=ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	code := require.Value(qr.Encode(address, qr.M))(t)
	drawn, ok := Screen{Paint: Colours(nil), Width: 80}.QR(address)
	if !ok {
		t.Fatal("nothing is drawn")
	}
	lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\n")
	isBlack := func(x, y int) bool {
		line, _ := strings.CutPrefix(lines[(y+margin)/2], "\x1b[38;5;16;48;5;231m")
		line, _ = strings.CutSuffix(line, "\x1b[0m")
		c := []rune(line)[x+margin]
		return c == '█' || c == '▀' && (y+margin)%2 == 0 || c == '▄' && (y+margin)%2 == 1
	}
	for y := -margin; y < code.Size+margin; y++ {
		for x := -margin; x < code.Size+margin; x++ {
			if isBlack(x, y) != code.Black(x, y) {
				t.Fatalf("the module at %d, %d is another one:\n%s", x, y, drawn)
			}
		}
	}
	for name, s := range map[string]Screen{"no colours": {Width: 80}, "narrow": {Paint: Colours(nil), Width: code.Size + 2*margin - 1}, "no terminal": {}} {
		if drawn, ok := s.QR(address); ok || drawn != "" {
			t.Errorf("%s: it is drawn", name)
		}
	}
}
