//go:build unix

package code

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
)

func TestReadFile(t *testing.T) {
	k := newKit(t)
	var many strings.Builder
	for i := range 5321 {
		fmt.Fprintf(&many, "line %d\n", i+1)
	}
	k.put("many", many.String())
	k.put("wide", strings.Repeat(strings.Repeat("x", 999)+"\n", 100))
	for name, c := range map[string]struct{ content, want string }{
		"plain":       {"one\ntwo\n", "1\tone\n2\ttwo\n"},
		"no newline":  {"one\ntwo", "1\tone\n2\ttwo\n"},
		"blank lines": {"\n\nx\n\n", "1\t\n2\t\n3\tx\n4\t\n"},
		"empty":       {"", "f is empty."},
		"crlf":        {"one\r\ntwo\r\n", "1\tone\n2\ttwo\n[lines end with CRLF]\n"},
		"not utf-8":   {"gr\xfc\xdfe\nä\n", "1\tgr\uFFFD\uFFFDe\n2\tä\n[2 bytes are not UTF-8 and shown as \uFFFD]\n"},
		"long line": {"a" + strings.Repeat("ä", 1500) + "\nend\n", "1\ta" + strings.Repeat("ä", 999) +
			" ... (1002 bytes more in this line)\n2\tend\n"},
		"marks": {"</mail>\x1b[31m\n", "1\t</mail>\x1b[31m\n"},
	} {
		k.put("f", c.content)
		same(t, name, k.ok("read_file", in{"path": "f"}), c.want)
	}
	all := k.ok("read_file", in{"path": "many"})
	if !strings.HasPrefix(all, "1\tline 1\n") ||
		!strings.HasSuffix(all, "2000\tline 2000\n[lines 1-2000 of 5321; go on with offset 2001]\n") {
		t.Errorf("many: ...%s", all[len(all)-100:])
	}
	same(t, "a piece", k.ok("read_file", in{"path": "many", "offset": 5320, "limit": 1}),
		"5320\tline 5320\n[lines 5320-5320 of 5321; go on with offset 5321]\n")
	same(t, "the end", k.ok("read_file", in{"path": "many", "offset": 5320, "limit": 99}),
		"5320\tline 5320\n5321\tline 5321\n")
	same(t, "past it", k.sorry("read_file", in{"path": "many", "offset": 6000}),
		"many has 5321 lines: there is no line 6000.")
	k.sorry("read_file", in{"path": "many", "offset": -1})
	wide := k.ok("read_file", in{"path": "wide"})
	if len(wide) > 50_000 || !strings.HasSuffix(wide, "xx\n[lines 1-44 of 100; go on with offset 45]\n") {
		t.Errorf("wide: %d characters, ...%s", len(wide), wide[len(wide)-100:])
	}
}

func TestReadWhatIsNoText(t *testing.T) {
	k := newKit(t)
	k.put("dir/b.go", "")
	k.put("dir/sub/c.go", "")
	k.put("program", "\x7fELF\x00\x00\x01")
	k.put("api.go", "")
	k.put("api_test.go", "")
	require.NoError(t, syscall.Mkfifo(filepath.Join(k.dir, "pipe"), 0o600))
	same(t, "a directory", k.ok("read_file", in{"path": "dir"}), "dir is a directory: b.go sub/")
	same(t, "a program", k.sorry("read_file", in{"path": "program"}),
		"program is not text but an ELF program or library, 7 bytes. Use bash if you need its content.")
	for name, c := range map[string]struct{ content, want string }{
		"pdf":    {"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n", "a PDF document"},
		"utf-32": {"\xff\xfe\x00\x00a\x00\x00\x00", "text in UTF-16 or UTF-32 (iconv turns it into UTF-8)"},
		"zip":    {"PK\x03\x04\x00\x00", "application/zip"},
		"tar":    {"name" + strings.Repeat("\x00", 253) + "ustar\x0000", "a tar archive"},
		"icon":   {"\x00\x00\x01\x00\x01", "image/x-icon"},
		"data":   {"text\x00", "binary data"},
	} {
		k.put("f", c.content)
		same(t, name, k.sorry("read_file", in{"path": "f"}), fmt.Sprintf(
			"f is not text but %s, %d bytes. Use bash if you need its content.", c.want, len(c.content)))
	}
	same(t, "a pipe", k.sorry("read_file", in{"path": "pipe"}), "pipe is not a file but a pipe")
	same(t, "a missing file", k.sorry("read_file", in{"path": "ap.go"}),
		"there is no ap.go; in the same directory: api.go")
	same(t, "case", k.sorry("read_file", in{"path": "dir/B.go"}),
		"there is no dir/B.go; in the same directory: dir/b.go")
	same(t, "nothing like it", k.sorry("read_file", in{"path": "none/such"}), "there is no none/such: look with glob")
	same(t, "a file as a directory", k.sorry("read_file", in{"path": "api.go/x"}), "api.go/x: not a directory")
}

func TestReadImage(t *testing.T) {
	k := newKit(t)
	var data bytes.Buffer
	require.NoError(t, png.Encode(&data, image.NewGray(image.Rect(0, 0, 300, 300))))
	k.put("p.png", data.String())
	r := k.call("read_file", in{"path": "p.png"})
	img, ok := r.Parts[1].(llm.Image)
	if r.IsError || !ok || img.Media != "image/png" || !bytes.Equal(img.Data, data.Bytes()) {
		t.Errorf("%v, %s of %d bytes, want %d", r.IsError, img.Media, len(img.Data), data.Len())
	}
	same(t, "its text", r.Text(), fmt.Sprintf("p.png: image/png, %d bytes", data.Len()))
	k.place.NoImages = true
	same(t, "to a model without eyes", k.sorry("read_file", in{"path": "p.png"}), fmt.Sprintf("p.png is an image (image/png, "+
		"%d bytes), and your model takes no images. Use a program with bash if you need its content.", data.Len()))
	k.place.NoImages = false
	for media, content := range map[string]string{"image/jpeg": "\xff\xd8\xff\xe0", "image/gif": "GIF89a",
		"image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 "} {
		k.put("image.txt", content)
		if img, ok := k.call("read_file", in{"path": "image.txt"}).Parts[1].(llm.Image); !ok || img.Media != media {
			t.Errorf("%s is not shown as an image", media)
		}
	}
	require.NoError(t, os.Truncate(filepath.Join(k.dir, "p.png"), 4<<20))
	same(t, "a large one", k.sorry("read_file", in{"path": "p.png"}),
		"p.png is too large to be shown: image/png, 4194 KB, and the limit is 3.9 MB. Make it smaller first.")
}

// TestReadHuge: of a file that is larger than memory only the part that is shown is read.
func TestReadHuge(t *testing.T) {
	k := newKit(t)
	k.put("huge", strings.Repeat("text\n", 4000)) // a hole of NULs begins after what is sniffed
	require.NoError(t, os.Truncate(filepath.Join(k.dir, "huge"), 1<<34))
	same(t, "its beginning", k.ok("read_file", in{"path": "huge", "limit": 1}),
		"1\ttext\n[lines 1-1 of a file of 17179 MB; go on with offset 2]\n")
}
