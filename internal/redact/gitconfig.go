package redact

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// InGitConfig returns what is secret in a file of git's configuration: what InText finds in it, the values of keys that
// IsCredential names, and the tokens of http.extraHeader. Comments count, too.
func InGitConfig(text string) (values []string) {
	for line := range configLines(text) {
		values = append(values, inConfigLine(line)...)
	}
	return values
}

// CleanGitConfig returns a file of git's configuration with Mark in place of what InGitConfig finds in it. It stays one
// that git can read.
func CleanGitConfig(text string) string {
	var clean strings.Builder
	for line := range configLines(text) {
		found := inConfigLine(line)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
		for _, v := range found {
			line = strings.NewReplacer(v, Mark, escapeConfig.Replace(v), Mark).Replace(line)
		}
		isLeft := func(v string) bool { return !strings.Contains(v, Mark) && !strings.Contains(Mark, v) }
		isShort := func(v string) bool { return len(v) < 4 } // it may stand in a word of git's, too
		if slices.ContainsFunc(found, isShort) || slices.ContainsFunc(inConfigLine(line), isLeft) {
			isSection := strings.HasPrefix(strings.TrimSpace(line), "[")
			if line = "# " + Mark + "\n"; isSection { // what follows is not of the section before
				line = "[muster]\n"
			}
		}
		clean.WriteString(line)
	}
	return clean.String()
}

// configLines returns the lines of a file of git's configuration, with those that go on joined.
func configLines(text string) func(yield func(string) bool) {
	return strings.Lines(strings.NewReplacer("\\\\", "\\\\", "\\\n", "", "\\\r\n", "").Replace(text))
}

// The characters with an escape in git's configuration.
var (
	escapeConfig   = strings.NewReplacer("\\", "\\\\", `"`, `\"`)
	unescapeConfig = strings.NewReplacer("\\\\", "\\", `\"`, `"`, `"`, "", `\n`, "\n", `\t`, "\t")
)

// inConfigLine returns what is secret in a line of git's configuration.
func inConfigLine(line string) []string {
	line = unescapeConfig.Replace(line)
	values := InText(line)
	key, value, _ := strings.Cut(line, "=")
	if section := strings.LastIndexByte(key, ']'); section >= 0 {
		key = key[section+1:]
	}
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	isWord := slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value))
	switch {
	case isWord:
	case strings.EqualFold(key, "extraheader"):
		name, header, _ := strings.Cut(value, ":")
		values = append(values, InHeader(name, strings.TrimSpace(header))...)
	case IsCredential(key) || strings.HasSuffix(strings.ToLower(key), "pass"):
		values = append(values, value)
	}
	for _, v := range slices.Clone(values) {
		plain, err := base64.StdEncoding.DecodeString(v)
		if _, password, ok := strings.Cut(string(plain), ":"); err == nil && ok && password != "" {
			values = append(values, password) // of the method Basic
		}
	}
	return values
}
