//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/text"
)

func picture(t *testing.T) []byte {
	t.Helper()
	var data bytes.Buffer
	require.NoError(t, png.Encode(&data, image.NewGray(image.Rect(0, 0, 3, 3))))
	return data.Bytes()
}

func writeProgram(t *testing.T, dir, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
}

// offers is a script that prints a file for the type that its clipboard has.
const offers = `case " $* " in *" %s "*) exec cat '%s' ;; esac; echo "Error: target not available" >&2; exit 1`

func TestClipboardImage(t *testing.T) {
	want := picture(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "p.png")
	require.NoError(t, os.WriteFile(file, want, 0o600))
	hasImage := fmt.Sprintf(offers, "image/png", file)
	x11, wayland := "DISPLAY=:7", "WAYLAND_DISPLAY=wayland-7"
	for name, c := range map[string]struct {
		system   string
		env      []string
		programs map[string]string
		want     string // of the error; "": the image
		code     muster.Code
	}{
		"xclip":       {"linux", []string{x11}, map[string]string{"xclip": hasImage}, "", ""},
		"wl-paste":    {"linux", []string{wayland, x11}, map[string]string{"wl-paste": hasImage, "xclip": "exit 1"}, "", ""},
		"only xclip":  {"linux", []string{wayland, x11}, map[string]string{"xclip": hasImage}, "", ""},
		"the second":  {"linux", []string{wayland, x11}, map[string]string{"xclip": hasImage, "wl-paste": "exit 1"}, "", ""},
		"another":     {"linux", []string{x11}, map[string]string{"xclip": fmt.Sprintf(offers, "image/gif", file)}, "", ""},
		"pngpaste":    {"darwin", nil, map[string]string{"pngpaste": "exec cat '" + file + "'"}, "", ""},
		"osascript":   {"darwin", nil, map[string]string{"osascript": fmt.Sprintf("echo '«data PNGf%X»'", want)}, "", ""},
		"text":        {"linux", []string{x11}, map[string]string{"xclip": "echo some text"}, "the clipboard holds no image", muster.NotFound},
		"nothing":     {"linux", []string{x11}, map[string]string{"xclip": "exit 1"}, "the clipboard holds no image", muster.NotFound},
		"bad digits":  {"darwin", nil, map[string]string{"osascript": "echo '«data PNGfXY»'"}, "the clipboard holds no image", muster.NotFound},
		"no program":  {"linux", []string{x11}, nil, "no program reads images from the clipboard here", muster.Unavailable},
		"no display":  {"linux", []string{"DISPLAY="}, map[string]string{"xclip": hasImage}, "no display is set", muster.Unavailable},
		"Windows":     {"windows", nil, nil, "no program reads images from the clipboard here", muster.Unavailable},
		"a flood":     {"linux", []string{x11}, map[string]string{"xclip": "exec cat /dev/zero"}, "more than the 3.9 MB", muster.Invalid},
		"a large one": {"linux", []string{x11}, map[string]string{"xclip": "head -c 4000000 /dev/zero"}, "more than the 3.9 MB", muster.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for name, script := range c.programs {
				writeProgram(t, bin, name, script)
			}
			// The programs themselves need cat and head.
			env := append(c.env, "PATH="+bin+":/usr/bin:/bin", "SOME_API_KEY=0123456789abcdef")
			if c.programs == nil {
				env[len(env)-2] = "PATH=" + bin
			}
			data, err := clipboardImage(t.Context(), c.system, env, t.TempDir())
			if c.want == "" && (err != nil || !bytes.Equal(data, want)) {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, &muster.Error{Code: c.code}) || muster.HintOf(err) == "") {
				t.Errorf("%v (%s)", err, muster.HintOf(err))
			}
		})
	}
}

// A program that hangs, and what it has started, end with the time that there is. One of the repository is never run.
func TestClipboardIsBounded(t *testing.T) {
	tier.All(t) // its promise is a time limit
	bin, root := t.TempDir(), t.TempDir()
	writeProgram(t, bin, "xclip", "sleep 1000 & sleep 1000")
	writeProgram(t, root, "wl-paste", "touch "+filepath.Join(root, "ran"))
	env := []string{"DISPLAY=:7", "WAYLAND_DISPLAY=w", "PATH=" + root + ":" + bin + ":/usr/bin:/bin"}
	begin := time.Now()
	_, err := clipboardImage(t.Context(), "linux", env, root)
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "xclip does not say within 5s") {
		t.Error(err)
	}
	if took := time.Since(begin); took > 4*clipboardWait {
		t.Errorf("it took %v", took)
	}
	if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
		t.Error("a program of the repository was run")
	}
}

// The image of the clipboard gets into a message, and the lead is told where it lies.
func TestPastingAnImage(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.terminal()
	file := filepath.Join(s.Dir, "p.png")
	require.NoError(t, os.WriteFile(file, picture(t), 0o600))
	words := w.words(`
speakers:
  lead:
    - cue: '(?s)what is @\S+ \?.*read_file (?P<path>[^\n]*/outputs/user/[0-9a-f]+-clipboard.png)\)'
      do: [{read_file: {path: "${path}"}}]
    - cue: 'image/png, \d+ bytes'
      say: It is small.
`)
	writeProgram(t, s.Dir, "xclip", "exit 1")
	s.Keys("DISPLAY=:7 WAYLAND_DISPLAY= muster --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`rights  (?s:.*)\n>`)
	s.Keys("what is ", "C-v")
	s.Wait(`(?s)the clipboard holds no image: your terminal pastes text.*> what is$`)
	writeProgram(t, s.Dir, "xclip", fmt.Sprintf(offers, "image/png", file))
	s.Keys("C-v")
	s.Wait(`> what is @.team/outputs/user/[0-9a-f]+-clipboard.png\s*$`)
	s.Keys("?", "Enter")
	s.Wait(`It is small\.(?s:.*)lead      idle`) // a lead that is at work is not left without a question
	kept, err := filepath.Glob(filepath.Join(w.dir, ".team/outputs/user/*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept: %q, %v", kept, err)
	}
	s.Keys("/quit", "Enter")
	s.Wait(`\n\$ $`)
}
