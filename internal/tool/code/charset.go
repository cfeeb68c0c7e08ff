package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"

	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/proc"
)

// charset is how the characters of a file are bytes. The zero value is UTF-8 without a byte order mark.
type charset struct {
	name     string            // for the model; "" for UTF-8
	encoding encoding.Encoding // nil for UTF-8, and where bytes are kept as they are
	bom      string            // the byte order mark that the file begins with
	// isUnknown says that the file is neither UTF-8 nor in an encoding that is recognised. Its text has the bytes of
	// the file, and only ASCII can be added to it.
	isUnknown bool
}

// The byte order marks.
const (
	bomUTF8    = "\xef\xbb\xbf"
	bomUTF16LE = "\xff\xfe"
	bomUTF16BE = "\xfe\xff"
	bomUTF32LE = "\xff\xfe\x00\x00"
)

var (
	utf16LE = xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)
	utf16BE = xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM)
)

// errNoText says that a file is not text in an encoding that is known here.
var errNoText = errors.New("not text")

// decodeFile returns the content of a file as UTF-8, and how it is to be written. The text of an unknown charset has
// the file's bytes. given is what git's attributes say of the file; nil: nothing. A text is encoded as the bytes that
// it was decoded from, unless git wants the file to be otherwise than it is.
func decodeFile(data []byte, given *charset) (text string, c charset, err error) {
	if given != nil {
		if text, c, ok := given.decode(data); ok {
			return text, c, nil
		}
		if !isBinary(data) && (utf8.Valid(data) || given.encoding == nil) {
			return string(data), *given, nil
		}
	}
	isHead := isBinary(data[:min(len(data), sniffedBytes)])
	for _, guess := range []charset{
		{name: "UTF-16LE", encoding: utf16LE, bom: bomUTF16LE},
		{name: "UTF-16BE", encoding: utf16BE, bom: bomUTF16BE},
		{name: "UTF-16LE", encoding: utf16LE}, {name: "UTF-16BE", encoding: utf16BE},
	} {
		isMarked := guess.bom != "" && bytes.HasPrefix(data, []byte(guess.bom)) &&
			!bytes.HasPrefix(data, []byte(bomUTF32LE))
		if !isMarked && (guess.bom != "" || !isHead) {
			continue
		}
		if text, c, ok := guess.decode(data); ok && (isMarked || isMostlyASCII(text)) {
			return text, c, nil
		}
	}
	if isHead {
		return "", charset{}, errNoText
	}
	if bytes.HasPrefix(data, []byte(bomUTF8)) {
		c.bom, data = bomUTF8, data[len(bomUTF8):]
	}
	if utf8.Valid(data) {
		return string(data), c, nil
	}
	var guesses []charset
	if declared := declaredCharset(data); declared != nil {
		guesses = append(guesses, *declared)
	}
	characters, stray := countCharacters(data)
	if stray >= 8*characters && isWestern(data) {
		guesses = append(guesses, westernCharset(data))
	}
	for _, guess := range guesses {
		if text, guess, ok := guess.decode(data); ok && c.bom == "" {
			return text, guess, nil
		}
	}
	c.isUnknown = characters <= stray
	return string(data), c, nil
}

// decode returns the text of a file that has the charset. ok is false where the bytes are not just what the text is
// encoded as. A byte order mark of UTF-16 decides about the order, and is kept.
func (c charset) decode(data []byte) (text string, as charset, ok bool) {
	if c.encoding == nil {
		return "", c, false
	}
	rest, isMissing := data, c.bom != "" && len(data) > 0
	if c.encoding == utf16LE || c.encoding == utf16BE {
		for bom, order := range map[string]encoding.Encoding{bomUTF16LE: utf16LE, bomUTF16BE: utf16BE} {
			if bytes.HasPrefix(data, []byte(bom)) {
				c.bom, c.encoding, rest, isMissing = bom, order, data[len(bom):], false
			}
		}
	}
	decoded, err := c.encoding.NewDecoder().Bytes(rest)
	if err != nil || isBinary(decoded) || isMissing {
		return "", c, false
	}
	again, err := c.encoding.NewEncoder().Bytes(decoded)
	return string(decoded), c, err == nil && bytes.Equal(again, rest)
}

// encode returns the bytes of a text that takes the place of another one, which is what the file has now. The error is
// in the model's words.
func (c charset) encode(before, after string) (string, error) {
	const replacement = "\uFFFD"
	if strings.Count(after, replacement) > strings.Count(before, replacement) {
		return "", errors.New("the new text has U+FFFD, which stands for characters that could not be read, in the " +
			"place of other bytes: write the characters themselves, or change only other parts with edit_file")
	}
	if c.bom != "" {
		after = strings.TrimPrefix(after, bomUTF8)
	}
	switch {
	case c.encoding == nil && c.name != "":
		return "", fmt.Errorf(".gitattributes has git keep it as %s, which this tool cannot write: write it with bash "+
			"(iconv -f UTF-8 -t %s)", c.name, c.name)
	case c.encoding == nil:
		isNew := func(r rune) bool {
			return r >= utf8.RuneSelf && r != utf8.RuneError && !strings.ContainsRune(before, r)
		}
		if c.isUnknown && strings.ContainsFunc(after, isNew) {
			return "", errors.New("it is not UTF-8, its encoding is not known, and the new text has characters " +
				"beyond ASCII: write only ASCII, or convert the text with bash (iconv -f UTF-8 -t ENCODING)")
		}
		return c.bom + after, nil
	}
	text, err := c.encoding.NewEncoder().String(after)
	if err != nil {
		return "", fmt.Errorf("the file is %s, which has no %s: write it with other characters, or convert the file "+
			"with bash (iconv)", c.name, c.missing(after))
	}
	return c.bom + text, nil
}

// missing returns the first character of a text that the charset does not have, quoted.
func (c charset) missing(text string) string {
	e := c.encoding.NewEncoder()
	for _, r := range text {
		if _, err := e.String(string(r)); err != nil {
			return fmt.Sprintf("%q", r)
		}
	}
	return "such characters"
}

// note returns what the model reads of a charset other than UTF-8, or "".
func (c charset) note() string {
	switch {
	case c.name != "":
		return "the file is " + c.name + "; edit_file and write_file keep that"
	case c.bom != "":
		return "the file begins with a byte order mark; edit_file and write_file keep it"
	}
	return ""
}

// isMostlyASCII reports whether most characters of a text are printable ASCII, as they are where UTF-16 without a byte
// order mark was read in the right order.
func isMostlyASCII(text string) bool {
	plain, all := 0, 0
	for _, r := range text {
		all++
		switch {
		case r >= ' ' && r < 0x7f || r == '\n' || r == '\r' || r == '\t':
			plain++
		case r < ' ':
			return false
		}
	}
	return all > 1 && 2*plain > all
}

// countCharacters returns how many characters beyond ASCII are in UTF-8, and how many bytes are not UTF-8.
func countCharacters(data []byte) (characters, stray int) {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			stray++
		case size > 1:
			characters++
		}
		i += size
	}
	return characters, stray
}

// isWestern reports whether bytes that are not UTF-8 are most likely a text in Windows-1252 or ISO 8859-1: its letters
// beyond ASCII stand alone or in pairs among those of ASCII. In other alphabets whole words are beyond ASCII, and most
// encodings of Eastern Europe have letters where these have signs.
func isWestern(data []byte) bool {
	inWords, short, long := 0, 0, 0
	isLetter := func(i int) bool {
		return i >= 0 && i < len(data) && (data[i]|0x20 >= 'a' && data[i]|0x20 <= 'z')
	}
	for i := 0; i < len(data); i++ {
		if data[i] < utf8.RuneSelf {
			continue
		}
		start := i
		for i < len(data) && data[i] >= utf8.RuneSelf {
			if bytes.IndexByte([]byte("\x81\x83\x8d\x8f\x90\x98\x9d"), data[i]) >= 0 {
				return false
			}
			i++
		}
		switch isBefore, isAfter := isLetter(start-1), isLetter(i); {
		case i-start > 2:
			long += i - start
		case i-start == 1 && data[start] < 0xc0:
			// A quotation mark, a sign; between letters only the few that stand there.
			if isBefore && isAfter && bytes.IndexByte([]byte("\x8a\x8c\x8e\x92\x96\x97\x9a\x9c\x9e\x9f\xad\xb4\xb7"),
				data[start]) < 0 {
				return false
			}
			short++
		default:
			short += i - start
			if isBefore && isAfter || i-start == 1 && (isBefore || isAfter) {
				inWords++
			}
		}
	}
	return short >= long && (inWords > 0 || isSigns(data))
}

// westernCharset returns which of the two a Western text is in. Where it has none of the characters that only
// Windows-1252 has, none comes to it.
func westernCharset(data []byte) charset {
	if slices.ContainsFunc(data, func(b byte) bool { return b >= 0x80 && b < 0xa0 }) {
		return charset{name: "Windows-1252", encoding: charmap.Windows1252}
	}
	return charset{name: "ISO-8859-1", encoding: charmap.ISO8859_1}
}

// isSigns reports whether all bytes beyond ASCII are signs that Windows-1252 and ISO 8859-1 have: a copyright, a
// degree, quotation marks.
func isSigns(data []byte) bool {
	const signs = "\x80\x85\x91\x92\x93\x94\x95\x96\x97\xa0\xa3\xa7\xa9\xab\xae\xb0\xb1\xb5\xb7\xbb"
	return !slices.ContainsFunc(data, func(b byte) bool {
		return b >= utf8.RuneSelf && strings.IndexByte(signs, b) < 0
	})
}

// charsetName matches what a file says of its own encoding: a comment of Python's, an XML declaration, an HTML page.
var charsetName = lazyregexp.New(`(?i)(?:coding[:=][ \t]*|encoding=["']|charset=["']?)([A-Za-z0-9._-]+)`)

// declaredCharset returns the charset that a file names at its beginning, or nil.
func declaredCharset(data []byte) *charset {
	m := charsetName().FindSubmatch(data[:min(len(data), 1024)])
	if m == nil {
		return nil
	}
	return namedCharset(string(m[1]))
}

// namedCharset returns the charset of a name as iconv, git and the web spell it, or nil where it is not known here.
// UTF-16 alone has a byte order mark, as git wants it.
func namedCharset(name string) *charset {
	bare := func(s string) string {
		s = strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(s))
		return strings.NewReplacer("ibmcodepage", "cp", "ibm", "cp").Replace(s)
	}
	switch key := bare(name); key {
	case "utf16", "utf16lebom":
		return &charset{name: name, encoding: utf16LE, bom: bomUTF16LE}
	case "utf16bebom":
		return &charset{name: name, encoding: utf16BE, bom: bomUTF16BE}
	case "utf16le":
		return &charset{name: name, encoding: utf16LE}
	case "utf16be":
		return &charset{name: name, encoding: utf16BE}
	default:
		for old, new := range map[string]string{"latin1": "iso88591", "latin9": "iso885915", "sjis": "shiftjis",
			"cp932": "shiftjis", "ms932": "shiftjis", "windows31j": "shiftjis", "cp936": "gbk", "gb2312": "gbk",
			"cp949": "euckr", "cp950": "big5"} {
			if key == old {
				key = new
			}
		}
		if number, ok := strings.CutPrefix(key, "cp125"); ok {
			key = "windows125" + number
		}
		all := slices.Concat(charmap.All, japanese.All, korean.All, simplifiedchinese.All, traditionalchinese.All)
		for _, e := range all {
			if s, ok := e.(fmt.Stringer); ok && bare(s.String()) == key {
				return &charset{name: name, encoding: e}
			}
		}
	}
	return nil
}

// attributeTime is how long git may take to read its attributes.
const attributeTime = 10 * time.Second

// givenCharset returns the charset in which git keeps a file in the working tree, as .gitattributes says; nil: as it is
// in the repository. One that is not known here has a name only.
func (t toolset) givenCharset(ctx context.Context, at confinedPath) *charset {
	const attribute = "working-tree-encoding"
	if !at.home || t.launcher == nil || !at.hasAttribute(attribute) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attributeTime)
	defer cancel()
	var out boundedBuffer
	tree := at.root.Name()
	p, err := t.launcher.Start(ctx, proc.Spec{Dir: tree, Out: &out, Env: Environ(ctx, t.options.Environ, tree),
		Argv: []string{"git", "check-attr", "-z", attribute, "--", filepath.ToSlash(at.rel)}})
	if err != nil {
		return nil
	}
	if exit, err := p.Wait(); err != nil || exit != 0 {
		return nil
	}
	fields := git.SplitNUL(out.String())
	if len(fields) != 3 || slices.Contains([]string{"unspecified", "unset", "set"}, fields[2]) ||
		strings.EqualFold(fields[2], "UTF-8") {
		return nil
	}
	if c := namedCharset(fields[2]); c != nil {
		return c
	}
	return &charset{name: fields[2]}
}

// hasAttribute reports whether a .gitattributes that is for the file names an attribute: git is asked only then.
func (s confinedPath) hasAttribute(name string) bool {
	const most = 1 << 20
	for dir := path.Dir(filepath.ToSlash(s.rel)); ; dir = path.Dir(dir) {
		if f, err := s.openRegular(filepath.Join(filepath.FromSlash(dir), ".gitattributes")); err == nil {
			data := make([]byte, most)
			n, _ := f.Read(data)
			_ = f.Close()
			if bytes.Contains(data[:n], []byte(name)) {
				return true
			}
		}
		if dir == "." || dir == "/" {
			return false
		}
	}
}
