package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/tier"
	"muster/store/mem"
)

// fine is must in a test of rapid, which looks for less of what failed.
func fine(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configMember is what config.json says of a member, in this order of fields.
type configMember struct {
	Name       muster.Name         `json:"name"`
	Role       string              `json:"role"`
	Status     muster.MemberStatus `json:"status"`
	IdleReason muster.IdleReason   `json:"idle_reason,omitempty"`
	Doing      string              `json:"doing,omitempty"`
	AgentID    string              `json:"agent_id,omitempty"`
	Model      string              `json:"model,omitempty"`
	JoinedAt   float64             `json:"joined_at,omitempty"`
}

// withRest returns the JSON object of v with those fields of rest appended that are not known, in the order of their names.
func withRest(v any, rest map[string]json.RawMessage, known ...string) (json.RawMessage, error) {
	object, err := muster.MarshalLine(v)
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		delete(rest, name)
	}
	if len(rest) == 0 {
		return object, nil
	}
	more, err := muster.MarshalLine(rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(object[:len(object)-1], []byte{','}, more[1:]), nil
}

// plain is config.json made of nothing but the file and the members.
func plain(t *rapid.T, f configDoc, all []muster.Member) string {
	t.Helper()
	members := []json.RawMessage{}
	ours := map[muster.Name]json.RawMessage{}
	for _, m := range all {
		ours[m.Name] = nil
	}
	for _, e := range f.members {
		if _, is := ours[e.name]; is {
			ours[e.name] = e.raw
		} else {
			members = append(members, e.raw)
		}
	}
	for _, m := range all {
		if m.Name == muster.Lead {
			continue
		}
		var rest map[string]json.RawMessage
		_ = json.Unmarshal(ours[m.Name], &rest)
		raw, err := withRest(configMember{m.Name, m.Role, m.Status, m.IdleReason, m.Doing, m.AgentID, m.Model, m.JoinedAt}, rest,
			memberFields...)
		fine(t, err)
		members = append(members, raw)
	}
	whole, err := withRest(struct {
		Team    muster.Name       `json:"team_name"`
		Members []json.RawMessage `json:"members"`
	}{"api-v2", members}, f.rest, "team_name", "members")
	fine(t, err)
	data, err := muster.Encode(json.RawMessage(whole))
	fine(t, err)
	return string(data)
}

// Whatever changed, in the members or in the file, and whoever changed it: what a process writes that has written before is
// what the file and the members say.
func TestConfigFollows(t *testing.T) {
	tier.All(t)
	names := []string{"a", "b", "c", "lead", "zed"}
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New()
		r, other := process(s), process(s.Handle())
		file := other.config.table
		read := func() (f configDoc, rev muster.Rev) {
			d, err := file.Get(t.Context(), configKey)
			if errors.Is(err, muster.ErrNotFound) {
				return f, muster.None
			}
			fine(rt, err)
			f, err = parseConfig(d.Data)
			fine(rt, err)
			return f, d.Rev
		}
		name := rapid.SampledFrom(names)
		entry := rapid.OneOf(rapid.SampledFrom([]string{`"odd"`, `7`, `null`, `{ }`, `{"name":3}`, `{"name":"zed" ,"tools":[ {"x<":[]},{} ,1.50]}`}),
			rapid.Custom(func(rt *rapid.T) string {
				return fmt.Sprintf(`{"pane":"%%%d", "name":%q,"status":"idle","a":{"b" : [1e2]}}`, rapid.IntRange(1, 2).Draw(rt, "pane"), name.Draw(rt, "name"))
			}))
		rt.Repeat(map[string]func(*rapid.T){
			"member": func(rt *rapid.T) {
				m := muster.Member{Name: muster.Name(name.Draw(rt, "name")), Role: "coder", Doing: rapid.SampledFrom([]string{"", `<"é">`}).Draw(rt, "doing"),
					Status:   rapid.SampledFrom([]muster.MemberStatus{muster.Working, muster.Idle}).Draw(rt, "status"),
					JoinedAt: float64(rapid.IntRange(1, 3).Draw(rt, "joined"))}
				_, rev, _ := other.read(t.Context(), m.Name)
				_, err := other.members.Put(t.Context(), string(m.Name), m, rev)
				fine(rt, err)
			},
			"gone": func(rt *rapid.T) {
				n := muster.Name(name.Draw(rt, "name"))
				_, rev, _ := other.read(t.Context(), n)
				fine(rt, other.members.Delete(t.Context(), string(n), rev))
			},
			"file": func(rt *rapid.T) {
				text := `{"z":1,"team_name":"x"`
				if list := rapid.SliceOfN(entry, 0, 4).Draw(rt, "entries"); len(list) > 0 {
					text += `,"members":[` + list[0]
					for _, e := range list[1:] {
						text += "," + e
					}
					text += "]"
				}
				_, rev := read()
				_, err := file.Put(t.Context(), configKey, []byte(text+rapid.SampledFrom([]string{"}", `,"\"members\": []":{"team_name":[]}}`}).Draw(rt, "end")), rev)
				fine(rt, err)
			},
			"no file": func(rt *rapid.T) {
				_, rev := read()
				fine(rt, file.Delete(t.Context(), configKey, rev))
			},
			"other process": func(rt *rapid.T) { fine(rt, other.Project(t.Context())) },
			"": func(rt *rapid.T) {
				f, _ := read()
				all, err := process(s.Handle()).List(t.Context())
				fine(rt, err)
				fine(rt, r.Project(t.Context()))
				if d := cmp.Diff(plain(rt, f, all), config(t, s)); d != "" {
					rt.Fatal(d)
				}
			},
		})
	})
}
