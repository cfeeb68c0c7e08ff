package terminal

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// An inserted text puts the cursor into the view's first row, also where it has waited in vain for its frame and has
// gone out alone: the next frame, and only that, is told.
func TestAFrameIsToldOfAnInsertion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "screen"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var told []bool
		o := newOutput(f, nil)
		o.beforeFrame = func(inserted bool) string { told = append(told, inserted); return "" }
		write := func(s string) {
			if _, err := o.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		write("frame 1\n")
		write(insertMark + "above\n")
		write("frame 2\n")
		write(insertMark + "above\n")
		time.Sleep(2 * maxHold)
		write("frame 3\n")
		write("frame 4\n")
		if len(told) != 4 || told[0] || !told[1] || !told[2] || told[3] {
			t.Errorf("the frames were told %v", told)
		}
	})
}
