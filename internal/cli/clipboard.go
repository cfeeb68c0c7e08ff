package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/chat"
	"muster/internal/proc"
	"muster/internal/workspace"
)

const (
	// clipboardWait is how long all programs together may take. The program that has copied answers them, and may hang.
	clipboardWait = 5 * time.Second
	// maxClipboardImage is what servers of models take: 5 MB as base64.
	maxClipboardImage = 5 << 20 / 4 * 3
)

// clipboardTypes are the images that models take, the one that most programs offer first.
var clipboardTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// clipboardReader is a program that prints what is in the clipboard.
type clipboardReader struct {
	name string
	// display is the variable without which the program has no clipboard to read.
	display string
	// args are its arguments, in which TYPE stands for the type of the image.
	args []string
}

// clipboardReaders returns the programs of a system, and what a user installs who has none of them.
func clipboardReaders(system string) (all []clipboardReader, install string) {
	switch system {
	case "darwin":
		return []clipboardReader{{name: "pngpaste", args: []string{"-"}},
			{name: "osascript", args: []string{"-e", "get the clipboard as «class PNGf»"}}}, "install pngpaste"
	case "windows":
		return nil, "save the image, and name its file with @"
	}
	return []clipboardReader{
		{"wl-paste", "WAYLAND_DISPLAY", []string{"--no-newline", "--type", "TYPE"}},
		{"xclip", "DISPLAY", []string{"-selection", "clipboard", "-t", "TYPE", "-o"}},
	}, "install wl-clipboard (Wayland) or xclip (X11)"
}

// clipboardImage returns the image in the clipboard. No program of the repository in root is run.
func clipboardImage(ctx context.Context, system string, env []string, root string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clipboardWait)
	defer cancel()
	launcher, err := proc.New(ctx)
	if err != nil {
		return nil, err
	}
	defer launcher.Close()
	readers, install := clipboardReaders(system)
	env = proc.Environment(env, nil) // no key of the user reaches them
	// They decide what is said where nothing was found: the user cannot mend all of it in the same way.
	hasDisplay, hasProgram := false, false
	for _, r := range readers {
		if r.display != "" && !slices.ContainsFunc(env, func(kv string) bool {
			return strings.HasPrefix(kv, r.display+"=") && len(kv) > len(r.display)+1
		}) {
			continue
		}
		hasDisplay = true
		path, outside := proc.FindOutside(r.name, env, root)
		if path == "" {
			continue
		}
		hasProgram = true
		// A program that has not this type ends at once, so to ask for each costs less than to list them before.
		for _, media := range clipboardTypes {
			data, err := r.read(ctx, launcher, path, media, outside)
			if err != nil || len(data) > 0 {
				return data, err
			}
		}
	}
	switch {
	case len(readers) > 0 && !hasDisplay:
		return nil, muster.Errorf(muster.Unavailable, "no clipboard can be read here: no display is set").
			WithHint("save the image, and name its file with @")
	case !hasProgram:
		return nil, muster.Errorf(muster.Unavailable, "no program reads images from the clipboard here").
			WithHint("%s", install)
	}
	return nil, muster.Errorf(muster.NotFound, "the clipboard holds no image").
		WithHint("your terminal pastes text, often with Ctrl-Shift-V")
}

// read returns the image that the program prints, or nothing where it prints none of this type.
func (r clipboardReader) read(
	ctx context.Context, launcher proc.Launcher, path, media string, env []string,
) ([]byte, error) {
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer quiet.Close()
	// What the program says of a missing type is of no use, and the exit codes differ.
	argv := []string{path}
	for _, arg := range r.args {
		argv = append(argv, strings.Replace(arg, "TYPE", media, 1))
	}
	// osascript prints two digits for each byte.
	out := &limitedBuffer{limit: 2*maxClipboardImage + 100}
	p, err := launcher.Start(ctx, proc.Spec{Argv: argv, Env: env, Out: out, Err: quiet})
	if err != nil {
		return nil, err
	}
	_, err = p.Wait() // the exit code says nothing more than the output
	data := out.data
	if digits, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("«data PNGf")); ok {
		data, _ = hex.DecodeString(strings.TrimSuffix(string(digits), "»")) // what is cut off is no image below
	}
	switch {
	case ctx.Err() != nil:
		return nil, muster.Errorf(muster.Unavailable,
			"%s does not say within %v what is in the clipboard", r.name, clipboardWait).
			WithHint("save the image, and name its file with @")
	case errors.Is(err, errTooMuch) || len(data) >= maxClipboardImage:
		return nil, muster.Errorf(muster.Invalid,
			"the image in the clipboard has more than the 3.9 MB that models take").
			WithHint("make it smaller")
	case err != nil:
		return nil, fmt.Errorf("read the clipboard with %s: %w", r.name, err)
	case !slices.Contains(clipboardTypes, http.DetectContentType(data)):
		return nil, nil
	}
	return data, nil
}

// errTooMuch is the error of a limitedBuffer that is full.
var errTooMuch = errors.New("the output is too long")

// limitedBuffer keeps what is written until the limit. It embeds no bytes.Buffer, by whose ReadFrom io.Copy would pass
// the limit.
type limitedBuffer struct {
	data  []byte
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.limit {
		return 0, errTooMuch
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// pasteImage keeps the image in the clipboard where members can read it. It returns its mention, or what to say where
// there is none.
func (c *conversation) pasteImage(ctx context.Context) (text, said string) {
	data, err := clipboardImage(ctx, runtime.GOOS, c.app.Env, c.Root())
	var path string
	if err == nil {
		_, kind, _ := strings.Cut(http.DetectContentType(data), "/")
		path, err = workspace.KeepForMembers(ctx, c.workspace, "clipboard."+kind, data)
	}
	if err != nil {
		said = muster.PlainText(err)
		if hint := muster.HintOf(err); hint != "" {
			said += ": " + hint
		}
		return "", said
	}
	// As it lies below the repository it is shorter to read.
	if below, err := filepath.Rel(c.Root(), path); err == nil {
		path = filepath.ToSlash(below)
	}
	return chat.Mention(path) + " ", ""
}
