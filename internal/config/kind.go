package config

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
)

// set parses the text into its field. The error is a sentence without the place, which the caller adds.
func (s Setting) set(text string) error {
	// The text is quoted, so that an empty one, or one with a blank at its end, can be seen.
	wrong := func(what string) error {
		return muster.Errorf(muster.Invalid, "%s is %s, not %s", s.Name, what, strconv.Quote(text))
	}
	switch to := s.to.(type) {
	case *string:
		if len(s.words) > 0 && !slices.Contains(s.words, text) {
			return wrong("one of " + strings.Join(s.words[1:], ", "))
		}
		// A wrong name is reported where it was written, with its line, and not when the first member starts.
		if s.check != nil && text != "" {
			if err := s.check(text); err != nil {
				return err
			}
		}
		*to = text
	case *int:
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < s.least:
			return wrong("a whole number, at least " + strconv.Itoa(s.least))
		case s.most > 0 && n > s.most:
			return wrong("a whole number, at most " + strconv.Itoa(s.most))
		}
		if *to = n; n == 0 && s.isOffAtZero {
			*to = -1
		}
		// Not strconv.ParseBool, which takes 1, t and TRUE too: a file should read the same everywhere.
	case *bool:
		if text != "true" && text != "false" {
			return wrong("true or false")
		}
		*to = (text == "true") != s.isInverted
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < min(time.Duration(s.least), 1) {
			return wrong("a duration with its unit, such as 90s or 2m")
		}
		if least := time.Duration(s.least); d < least {
			return wrong("a duration, at least " + least.String())
		}
		if *to = d; d == 0 && s.isOffAtZero {
			*to = -1
		}
	case *Checks:
		return to.set(text)
	case *names:
		list := s.split(text)
		if slices.ContainsFunc(list, func(s string) bool { return !variableName.MatchString(s) }) {
			return wrong("names of variables, such as MY_NAME or MY_*")
		}
		*to = list
	case *[]string:
		list := s.split(text)
		for _, entry := range list {
			if s.check == nil {
				break
			}
			if err := s.check(entry); err != nil {
				return err
			}
		}
		*to = list
	}
	return nil
}

// names are those of variables.
type names []string

// split returns the entries of a list.
func (s Setting) split(text string) (entries []string) {
	isBetween := func(r rune) bool { return strings.ContainsRune(cmp.Or(s.separators, ","), r) }
	for _, entry := range strings.FieldsFunc(text, isBetween) {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// join returns the text of a list, which split reads.
func (s Setting) join(entries []string) string {
	return strings.Join(entries, cmp.Or(s.separators, ",")[:1])
}

// variableName is the name of a variable of the environment, or the beginning of several with a * behind.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// text returns what the field holds, so that set can read it back.
func (s Setting) text() string {
	switch to := s.to.(type) {
	case *int:
		return strconv.Itoa(max(*to, 0))
	case *bool:
		return strconv.FormatBool(*to != s.isInverted)
	case *time.Duration:
		// Without its empty parts: 2m, not 2m0s.
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(max(*to, 0).String())
	case *Checks:
		return to.String()
	case *names:
		return s.join(*to)
	case *[]string:
		return s.join(*to)
	case *string:
		return *to
	}
	return ""
}

// value returns what the field holds, with the source of it, as people read it. It has no secrets.
func (s Setting) value(source Source) Value {
	v := Value{Name: s.Name, Value: s.text(), Source: source, Description: s.About}
	if s.isModel {
		v.Value = s.withoutQueries()
	}
	return v
}

func (s Setting) models() []string {
	switch to := s.to.(type) {
	case *[]string:
		if s.isModel {
			return *to
		}
	case *string:
		if s.isModel && *to != "" {
			return []string{*to}
		}
	}
	return nil
}

// withoutQueries returns the models that a setting names as people read them.
func (s Setting) withoutQueries() string {
	names := slices.Clone(s.models())
	for i, name := range names {
		names[i] = withoutQuery(name)
	}
	return strings.Join(names, ",")
}
