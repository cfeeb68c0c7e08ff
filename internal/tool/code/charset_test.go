package code

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
)

// utf16 returns ASCII in UTF-16, the low byte first.
func utf16(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.Write([]byte{c, 0})
	}
	return b.String()
}

func TestBytesAreKept(t *testing.T) {
	k := newKit(t)
	k.tools = Tools(k.place, k.jobs.launcher, k.jobs, Options{Outputs: k.place.ReadOnly[0], Patches: true})
	k.git("init", "-q")
	k.put(".gitattributes", "*.u16 working-tree-encoding=UTF-16LE-BOM\n*.sjis working-tree-encoding=SHIFT-JIS\n"+
		"*.u32 working-tree-encoding=UTF-32\n*.utf working-tree-encoding=utf-8\n")
	edit := func(old, new string) in { return in{"old_text": old, "new_text": new} }
	write := func(content string) in { return in{"content": content} }
	patch := func(lines string) in { return in{"input": lines} }
	gbk := require.Value(simplifiedchinese.GBK.NewEncoder().String("x = 1 // 这是一个注释\n"))(t)
	const latin, mark = "x = 1\n// caf\xe9\n", "\xef\xbb\xbf"
	for name, c := range map[string]struct {
		file, content string
		call          in
		want          string // the content, or "!" and a part of the error
	}{
		"ASCII into Latin-1":        {"f", latin, edit("x = 1", "x = 2"), "x = 2\n// caf\xe9\n"},
		"an accent into Latin-1":    {"f", latin, edit("x = 1", "x = 1 // é"), "x = 1 // \xe9\n// caf\xe9\n"},
		"over an accent":            {"f", latin, edit("café", "thé"), "x = 1\n// th\xe9\n"},
		"whole Latin-1":             {"f", latin, write("// über\n"), "// \xfcber\n"},
		"what Latin-1 has not":      {"f", latin, write("// 5 €\n"), "!ISO-8859-1, which has no '€'"},
		"Windows-1252":              {"f", "it\x92s 5 \x80\n", edit("5", "6 “x”"), "it\x92s 6 \x93x\x94 \x80\n"},
		"a copyright":               {"f", "// \xa9 2020\n", edit("2020", "2021 §"), "// \xa9 2021 \xa7\n"},
		"German, with an alphabet":  {"f", "gr\xf6\xdfe f\xfcr [\xe4\xf6\xfc]\n", edit("für", "für ä"), "gr\xf6\xdfe f\xfcr \xe4 [\xe4\xf6\xfc]\n"},
		"a replacement character":   {"f", latin, write("// caf\uFFFD\n"), "!U+FFFD"},
		"one by an edit":            {"f", "// 中文\n", edit("中文", "中\uFFFD"), "!U+FFFD"},
		"one that was there":        {"f", "// \uFFFD 1\n", edit("1", "2"), "// \uFFFD 2\n"},
		"one in a new file":         {"", "", write("\uFFFD"), "\uFFFD"},
		"GBK, ASCII":                {"f", gbk, edit("x = 1", "x = 2"), strings.Replace(gbk, "1", "2", 1)},
		"GBK, more":                 {"f", gbk, edit("x = 1", "x = 1 é"), "!encoding is not known"},
		"GBK, whole":                {"f", gbk, write("x = 1 é"), "!encoding is not known"},
		"GBK that says so":          {"f", "# -*- coding: gbk -*-\n" + gbk, edit("注释", "文"), strings.Replace("# -*- coding: gbk -*-\n"+gbk, "\xd7\xa2\xca\xcd", "\xce\xc4", 1)},
		"Polish":                    {"f", "mo\xbfe by\xe6\n", edit("by", "é"), "!"},
		"UTF-8 with one stray byte": {"f", "ä ö ü \xff\n", edit("ö", "é"), "ä é ü \xff\n"},
		"UTF-16":                    {"f", "\xff\xfe" + utf16("x = 1\n"), write("x = 2\n"), "\xff\xfe" + utf16("x = 2\n")},
		"UTF-16, edit, CRLF":        {"f", "\xff\xfe" + utf16("a\r\nb\r\n"), edit("a\nb", "a\nc"), "\xff\xfe" + utf16("a\r\nc\r\n")},
		"UTF-16, big endian":        {"f", "\xfe\xff\x00a\x00\n", edit("a", "é"), "\xfe\xff\x00\xe9\x00\n"},
		"UTF-16 without a mark":     {"f", utf16("name = 1\n"), edit("1", "2"), utf16("name = 2\n")},
		"a mark":                    {"f", mark + "{}\n", write("{\"a\": 1}\n"), mark + "{\"a\": 1}\n"},
		"a mark, and another":       {"f", mark + "a\n", write(mark + "b\n"), mark + "b\n"},
		"a mark, edit":              {"f", mark + "a\n", edit("a", "b"), mark + "b\n"},
		"CRLF":                      {"f", "a\r\nb\r\n", write("c\nd\n"), "c\r\nd\r\n"},
		"LF":                        {"f", "a\nb\n", write("c\r\nd\r\n"), "c\nd\n"},
		"both line ends":            {"f", "a\r\nb\n", write("c\nd\n"), "c\nd\n"},
		"what is no text":           {"f", "\x00\x01\x02", write("x"), "!not text"},
		"an attribute":              {"f.u16", "\xff\xfe" + utf16("x\n"), write("y\n"), "\xff\xfe" + utf16("y\n")},
		"an attribute, a new file":  {"new.u16", "", write("y\n"), "\xff\xfe" + utf16("y\n")},
		"an attribute, damage":      {"f.u16", "x\n", edit("x", "y"), "\xff\xfe" + utf16("y\n")},
		"an attribute, Japanese":    {"f.sjis", "\x83\x65\n", edit("テ", "テテ"), "\x83\x65\x83\x65\n"},
		"an attribute, unknown":     {"f.u32", "x", write("y"), "!iconv -f UTF-8 -t UTF-32"},
		"an attribute, UTF-8":       {"f.utf", "x", write("é"), "é"},
		"a patch": {"f", latin, patch("*** Begin Patch\n*** Update File: f\n@@\n-x = 1\n+x = 1 // é\n // café\n*** End Patch\n"),
			"x = 1 // \xe9\n// caf\xe9\n"},
		"a patch with a move": {"f", "\xff\xfe" + utf16("x\n"), patch("*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-x\n+y\n" +
			"*** End Patch\n"), "\xff\xfe" + utf16("y\n")},
		"a patch that cannot be": {"f", latin, patch("*** Begin Patch\n*** Update File: f\n@@\n-x = 1\n+x = 5 €\n*** End Patch\n"), "!€"},
	} {
		t.Run(name, func(t *testing.T) {
			k.t = t
			tool, file := "write_file", c.file
			if file == "" {
				file = "new"
			}
			c.call["path"] = file
			switch {
			case c.call["old_text"] != nil:
				tool = "edit_file"
			case c.call["input"] != nil:
				tool = "apply_patch"
				delete(c.call, "path")
			}
			if c.content != "" {
				k.put(file, c.content)
				k.call("read_file", in{"path": file})
			}
			defer os.Remove(filepath.Join(k.dir, file))
			part, isError := strings.CutPrefix(c.want, "!")
			if isError {
				if said := k.sorry(tool, c.call); !strings.Contains(said, part) {
					t.Errorf("%q is not in %q", part, said)
				}
				same(t, "untouched", k.get(file), c.content)
				return
			}
			k.ok(tool, c.call)
			if name == "a patch with a move" {
				file = "g"
			}
			same(t, "content", k.get(file), c.want)
		})
	}
}

func TestReadDecodes(t *testing.T) {
	k := newKit(t)
	for name, c := range map[string]struct{ content, want string }{
		"Latin-1": {"caf\xe9\n", "1\tcafé\n[the file is ISO-8859-1; edit_file and write_file keep that]\n"},
		"UTF-16": {"\xff\xfe" + utf16("a\r\nb"),
			"1\ta\n2\tb\n[lines end with CRLF]\n[the file is UTF-16LE; edit_file and write_file keep that]\n"},
		"a mark": {"\xef\xbb\xbfa", "1\ta\n[the file begins with a byte order mark; edit_file and write_file keep it]\n"},
		"XML": {"<?xml encoding=\"windows-1251\"?>\xe6\n",
			"1\t<?xml encoding=\"windows-1251\"?>ж\n[the file is windows-1251; edit_file and write_file keep that]\n"},
	} {
		k.put("f", c.content)
		same(t, name, k.ok("read_file", in{"path": "f"}), c.want)
	}
}

// TestDecodedFilesAreEncodedAsTheyWere: whatever a file holds, what is read of it is written as the same bytes.
func TestDecodedFilesAreEncodedAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.SampledFrom([]string{"", "\xff\xfe", "\xfe\xff", "\xef\xbb\xbf", "# coding: sjis\n", "caf\xe9 "}).Draw(t, "begin")
		data := append([]byte(begin), rapid.SliceOf(rapid.Byte()).Draw(t, "data")...)
		text, form, err := decodeFile(data, nil)
		if err != nil {
			return
		}
		if again, err := form.encode(text, text); err != nil || again != string(data) {
			t.Errorf("%q is read as %q in %q and written as %q, %v", data, text, form.name, again, err)
		}
	})
}

func TestOtherFormOfAName(t *testing.T) {
	k := newKit(t)
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	k.put(decomposed+"/"+composed+".txt", "a\n")
	k.ok("read_file", in{"path": composed + "/" + decomposed + ".txt"})
	k.ok("write_file", in{"path": composed + "/" + composed + ".txt", "content": "b\n"})
	same(t, "written", k.get(decomposed+"/"+composed+".txt"), "b\n")
	k.ok("write_file", in{"path": composed + "/new.txt", "content": "b\n"})
	same(t, "new", k.get(decomposed+"/new.txt"), "b\n")
	k.ok("write_file", in{"path": "th\u00e9.txt", "content": "c\n"})
	same(t, "another", k.get("th\u00e9.txt"), "c\n")
}
