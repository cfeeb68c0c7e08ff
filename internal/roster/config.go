package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"muster"
)

// configKey is config.json among the documents of the team.
const configKey = "config"

// shown is what config.json says of a member, in this order.
type shown struct {
	Name       muster.Name         `json:"name"`
	Role       string              `json:"role"`
	Status     muster.MemberStatus `json:"status"`
	IdleReason muster.IdleReason   `json:"idle_reason,omitempty"`
	Doing      string              `json:"doing,omitempty"`
	AgentID    string              `json:"agent_id,omitempty"`
	Model      string              `json:"model,omitempty"`
	JoinedAt   float64             `json:"joined_at,omitempty"`
}

var shownFields = []string{"name", "role", "status", "idle_reason", "doing", "agent_id", "model", "joined_at"}

// document is config.json as it lies there.
type document struct {
	rest    map[string]json.RawMessage // fields that others added
	members []entry
}

// entry is one member in config.json.
type entry struct {
	name muster.Name
	raw  json.RawMessage
}

// foreign are the members that other programs wrote into config.json. While the file cannot be read, they are those of
// before.
func (r *Roster) foreign(ctx context.Context) ([]muster.Name, error) {
	listed, err := r.listed.all(ctx)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	return r.index.others(ctx, func(yield func(muster.Name) bool) {
		for _, names := range listed {
			for _, n := range names {
				if !yield(n) {
					return
				}
			}
		}
	})
}

// namesakes are the foreign members that have the name, but for upper and lower case. It looks at no others, however
// many there are.
func (r *Roster) namesakes(ctx context.Context, name muster.Name) ([]muster.Name, error) {
	listed, err := r.listed.all(ctx)
	if err != nil || len(listed[folded(name)]) == 0 {
		return nil, err
	}
	return r.index.others(ctx, slices.Values(listed[folded(name)]))
}

// readConfig reads config.json; where there is none, the document is empty with Rev None.
func (r *Roster) readConfig(ctx context.Context) (document, muster.Doc, error) {
	d, err := r.config.Get(ctx, configKey)
	if errors.Is(err, muster.ErrNotFound) {
		return document{}, muster.Doc{}, nil
	}
	if err != nil {
		return document{}, d, err
	}
	f, err := parse(d.Data)
	return f, d, err
}

func parse(data []byte) (f document, err error) {
	var members []json.RawMessage
	if err = json.Unmarshal(data, &f.rest); err == nil && f.rest["members"] != nil {
		err = json.Unmarshal(f.rest["members"], &members)
	}
	if err != nil {
		return document{}, muster.Errorf(muster.Corrupt, "config.json cannot be read: %w", err)
	}
	delete(f.rest, "members")
	delete(f.rest, "team_name")
	for _, raw := range members {
		var m struct {
			Name muster.Name `json:"name"`
		}
		if json.Unmarshal(raw, &m) != nil {
			m.Name = "" // no member as we know them; kept all the same
		}
		f.members = append(f.members, entry{m.Name, raw})
	}
	return f, nil
}

// Project writes config.json from the members: first those that other programs wrote, as they are and in their order,
// then the teammates by the time they joined. The lead is not one of them. Nothing is written when nothing changed.
// Errors: Corrupt when the file that is there cannot be read; it is left alone, and that is said once.
func (r *Roster) Project(ctx context.Context) error {
	err := r.project(ctx)
	if errors.Is(err, muster.ErrCorrupt) {
		_, _ = r.listed.all(ctx) // says so
	}
	return err
}

func (r *Roster) project(ctx context.Context) error {
	for {
		// The file before the members: what is newer than they are changes the file's revision.
		f, there, err := r.readConfig(ctx)
		if err != nil {
			return err
		}
		all, err := r.List(ctx)
		if err != nil {
			return err
		}
		data, err := project(r.team, f, all)
		if err != nil {
			return err
		}
		if bytes.Equal(there.Data, data) {
			return nil
		}
		if _, err = r.config.Put(ctx, configKey, data, there.Rev); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// project is config.json for the members.
func project(team muster.Name, f document, all []muster.Member) ([]byte, error) {
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
		raw, err := muster.Line(shown{m.Name, m.Role, m.Status, m.IdleReason, m.Doing, m.AgentID, m.Model, m.JoinedAt})
		if err != nil {
			return nil, err
		}
		if raw, err = withRest(raw, ours[m.Name], shownFields); err != nil {
			return nil, err
		}
		members = append(members, raw)
	}
	head, err := muster.Line(struct {
		Team    muster.Name       `json:"team_name"`
		Members []json.RawMessage `json:"members"`
	}{team, members})
	if err != nil {
		return nil, err
	}
	rest, err := muster.Line(f.rest)
	if err != nil {
		return nil, err
	}
	whole, err := withRest(head, rest, []string{"team_name", "members"})
	if err != nil {
		return nil, err
	}
	return muster.Encode(json.RawMessage(whole))
}

// withRest is the object, with the fields that old has beside the known ones, in the order of their names.
func withRest(object, old json.RawMessage, known []string) (json.RawMessage, error) {
	var rest map[string]json.RawMessage
	if len(old) == 0 || json.Unmarshal(old, &rest) != nil {
		return object, nil
	}
	maps.DeleteFunc(rest, func(k string, _ json.RawMessage) bool { return slices.Contains(known, k) })
	if len(rest) == 0 {
		return object, nil
	}
	more, err := muster.Line(rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(object[:len(object)-1], []byte{','}, more[1:]), nil
}

// rarely is how many times as long as a projection took nothing is projected: it costs as much as there are members,
// however few of them have changed.
const rarely = 20

// Projector keeps config.json up to date until ctx ends, and then writes it a last time. It writes at most once a
// second, and with thousands of members for no more than a small part of the time.
func (r *Roster) Projector(ctx context.Context) {
	changed := r.members.Watch(ctx)
	write := func(ctx context.Context) (done bool) {
		return r.Project(ctx) == nil
	}
	for ctx.Err() == nil {
		began := time.Now()
		done := write(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(max(time.Second, rarely*time.Since(began))):
		}
		if !done {
			continue // what could not be written is tried again without a change
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	write(last)
}
