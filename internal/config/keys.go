package config

import (
	"strings"
	"unicode"

	"muster"
	"muster/internal/durable"
)

// ReadKeyFile returns the key that is all a file has. Errors name the file.
func ReadKeyFile(path string) (string, error) {
	data, err := durable.ReadRegular(path, MaxSize)
	if err != nil {
		return "", err
	}
	return ParseKey(path, string(data))
}

// ParseKey returns the key that is all a text has; name says where the text is from. Errors are Invalid and show
// nothing of the text.
func ParseKey(name, text string) (string, error) {
	key := trimKey(text)
	if len(strings.Fields(key)) != 1 {
		return "", muster.Errorf(muster.Invalid, "%s has more or less than one word, which is the key", name)
	}
	return key, checkKey(name, key)
}

// trimKey returns a key without what copying and editors leave at its ends: blanks, line ends, and characters without a
// width.
func trimKey(key string) string {
	return strings.TrimFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
}

// checkKey returns an error for a key that no header can hold; name says where it is from.
func checkKey(name, key string) error {
	isWrong := func(r rune) bool { return r < ' ' || r > '~' }
	if !strings.ContainsFunc(key, isWrong) {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the key in %s cannot be sent: it has a line end or another control "+
		"character in it, or one that is not ASCII; copy it again", name)
}
