package config

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/lazyregexp"
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
		all, err := ParseChecks(text)
		*to = all
		return err
	case *names:
		list := s.split(text)
		if slices.ContainsFunc(list, func(s string) bool { return !variableName().MatchString(s) }) {
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
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

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
	v := Value{Name: s.Name, Value: s.text(), Source: source, Description: s.About, Removed: s.removed}
	if s.removed != "" {
		v.Description = "does nothing: it was removed in " + s.removed
	}
	if s.isModel {
		shown := slices.Clone(s.models())
		for i, name := range shown {
			shown[i] = withoutQuery(name)
		}
		v.Value = strings.Join(shown, ",")
	}
	return v
}

// models returns the models that the setting names.
func (s Setting) models() []string {
	switch to, isList := s.to.(*[]string); {
	case !s.isModel || s.text() == "":
		return nil
	case isList:
		return *to
	}
	return []string{s.text()}
}

// A Host is an entry of sandbox.network: a host that programs may reach, or many.
type Host struct {
	// Name is that of the host, in small letters; *.NAME is all below it.
	Name string
	// Port is the only one; "" is 80 and 443.
	Port string
	// Network has addresses of the host that are refused otherwise; the zero value has none.
	Network netip.Prefix
}

// hostPattern is a name, or *.NAME for all below it, with a port behind it or not.
var hostPattern = lazyregexp.New(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// ParseHost parses NAME or *.NAME, with :PORT behind it or not, and with =NETWORK behind that for a name that leads
// into a private network: registry.corp=10.0.0.0/8.
func ParseHost(text string) (h Host, err error) {
	name, network, hasNetwork := strings.Cut(strings.ToLower(text), "=")
	if hasNetwork {
		if ip, err := netip.ParseAddr(network); err == nil {
			network += "/" + strconv.Itoa(ip.BitLen())
		}
		h.Network, err = netip.ParsePrefix(network)
	}
	if err != nil || !hostPattern().MatchString(name) {
		return Host{}, muster.Errorf(muster.Invalid, "%q is no host: name it like registry.npmjs.org, *.npmjs.org, "+
			"example.org:8443, or registry.corp=10.0.0.0/8 where it leads into that network", text)
	}
	h.Name, h.Port, _ = strings.Cut(name, ":")
	h.Network = h.Network.Masked()
	return h, nil
}

// checkHost refuses what is no host of sandbox.network, such as a URL.
func checkHost(entry string) error {
	_, err := ParseHost(entry)
	return err
}

// A number without a unit is refused: whether it is bytes or megabytes differs from tool to tool, and a limit that is a
// million times too low or too high does more harm than a message.

// ParseSize returns the bytes of a size such as 512MB, 1.5GB, 0, or 75%, which is of whole.
func ParseSize(text string, whole int64) (int64, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(text)), 0.0
	if number == "0" || number == "" {
		return 0, nil
	}
	// Powers of two, as in most tools that limit memory.
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"%", float64(whole) / 100}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}} {
		if before, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = before, u.bytes
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || unit == 0 || !(n > 0) || n*unit > math.MaxInt64/2 {
		return 0, muster.Errorf(muster.Invalid, "%q is no size: write it like 512MB, 8GB or 0", text)
	}
	return int64(n * unit), nil
}

// checkSize refuses what is no size.
func checkSize(text string) error {
	_, err := ParseSize(text, 100)
	return err
}
