package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
)

// Names is a list of names, with commas between them.
type Names string

// List returns the names one by one.
func (n Names) List() []string {
	return strings.FieldsFunc(string(n), func(r rune) bool { return r == ',' || r == ' ' })
}

// List is a list of paths or hosts, with commas between them.
type List string

// List returns the entries one by one.
func (l List) List() (all []string) {
	for entry := range strings.SplitSeq(string(l), ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			all = append(all, entry)
		}
	}
	return all
}

// Models is a list of names of models, with commas between them.
type Models string

// List returns the names one by one.
func (m Models) List() []string { return Names(m).List() }

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
		*to = n
		// Not strconv.ParseBool, which takes 1, t and TRUE too: a file should read the same everywhere.
	case *bool:
		if text != "true" && text != "false" {
			return wrong("true or false")
		}
		*to = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < min(time.Duration(s.least), 1) {
			return wrong("a duration with its unit, such as 90s or 2m")
		}
		if least := time.Duration(s.least); d < least {
			return wrong("a duration, at least " + least.String())
		}
		*to = d
	case *Models:
		joined, err := s.join(Models(text).List())
		*to = Models(joined)
		return err
	case *List:
		joined, err := s.join(List(text).List())
		*to = List(joined)
		return err
	case *Checks:
		return to.set(text)
	case *Names:
		list := Names(text).List()
		if slices.ContainsFunc(list, func(s string) bool { return !variableName.MatchString(s) }) {
			return wrong("names of variables, such as MY_NAME or MY_*")
		}
		*to = Names(strings.Join(list, ","))
	}
	return nil
}

// join checks each entry of a list and puts commas between them.
func (s Setting) join(entries []string) (string, error) {
	for _, entry := range entries {
		if err := s.check(entry); err != nil {
			return "", err
		}
	}
	return strings.Join(entries, ","), nil
}

// variableName is the name of a variable of the environment, or the beginning of several with a * behind.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// text returns what the field holds, so that set can read it back.
func (s Setting) text() string {
	switch to := s.to.(type) {
	case *int:
		return strconv.Itoa(*to)
	case *bool:
		return strconv.FormatBool(*to)
	case *time.Duration:
		// Without its empty parts: 2m, not 2m0s.
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(to.String())
	case *Checks:
		return to.String()
	case *Names:
		return string(*to)
	case *Models:
		return string(*to)
	case *List:
		return string(*to)
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
	case *Models:
		return to.List()
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
