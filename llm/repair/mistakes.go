package repair

import (
	"fmt"
	"strings"

	"muster/llm"
)

// maxMistakes is how often a model may make the same mistake in the arguments of a tool. It has read twice what was
// wrong then.
const maxMistakes = 3

// Mistakes finds a model that makes the same mistake in the arguments of its calls again and again. The zero value has
// seen none.
type Mistakes struct{ last map[string]mistake } // by the name of the tool

// mistake counts the replies in a row whose call of a tool could not be read for the same reason.
type mistake struct {
	why   string
	times int
}

// Count counts the calls of a reply, as Reply has left them. It returns an error that says which mistake was made for
// the third time.
func (m *Mistakes) Count(calls []llm.Call) (err error) {
	now := map[string]mistake{}
	for _, c := range calls {
		var x mistake
		if c.Malformed != "" {
			_, why := Object([]byte(c.Malformed))
			before := m.last[c.Name]
			if x = (mistake{fmt.Sprint(why), 1}); withoutPosition(before.why) == withoutPosition(x.why) {
				x.times += before.times
			}
		}
		now[c.Name] = x
	}
	for name, x := range now {
		if m.last == nil {
			m.last = map[string]mistake{}
		}
		if m.last[name] = x; x.times >= maxMistakes {
			err = fmt.Errorf("the arguments of %s could not be read %d times for the same reason: %s", name,
				x.times, x.why)
		}
	}
	return err
}

// withoutPosition returns what is wrong without where.
func withoutPosition(why string) string {
	what, _, _ := strings.Cut(why, " at character ")
	return what
}
