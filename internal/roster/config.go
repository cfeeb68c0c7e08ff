package roster

import (
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

// shown is what config.json says of a member, in this order of fields.
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

// show returns what config.json is to say of m.
func show(m *muster.Member) shown {
	return shown{m.Name, m.Role, m.Status, m.IdleReason, m.Doing, m.AgentID, m.Model, m.JoinedAt}
}

// document is the content of config.json.
type document struct {
	rest    map[string]json.RawMessage // fields that others added
	members []entry
}

// entry is one member in config.json.
type entry struct {
	name muster.Name
	raw  json.RawMessage
}

// foreign returns the members that other programs wrote into config.json. While the file cannot be read, these are the
// members that it had before.
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

// namesakes returns the foreign members that have the name, in whatever upper and lower case. Its cost does not grow
// with the number of members.
func (r *Roster) namesakes(ctx context.Context, name muster.Name) ([]muster.Name, error) {
	listed, err := r.listed.all(ctx)
	if err != nil || len(listed[foldCase(name)]) == 0 {
		return nil, err
	}
	return r.index.others(ctx, slices.Values(listed[foldCase(name)]))
}

// parse reads config.json. A member of another program that has no readable name is kept with the name "".
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
	_, err := r.project(ctx)
	return err
}

// project is Project, and returns the size of the file in bytes.
func (r *Roster) project(ctx context.Context) (size int, err error) {
	size, err = r.page.project(ctx)
	if errors.Is(err, muster.ErrCorrupt) {
		_, _ = r.listed.all(ctx) // says so
	}
	return size, err
}

// withRest returns the object with those fields of old appended that are not known, in the order of their names. So
// what other programs have added to a member survives.
func withRest(object, old json.RawMessage, known []string) (json.RawMessage, error) {
	var rest map[string]json.RawMessage
	if len(old) == 0 || json.Unmarshal(old, &rest) != nil {
		return object, nil
	}
	maps.DeleteFunc(rest, func(k string, _ json.RawMessage) bool { return slices.Contains(known, k) })
	if len(rest) == 0 {
		return object, nil
	}
	more, err := muster.MarshalLine(rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(object[:len(object)-1], []byte{','}, more[1:]), nil
}

const (
	// backoffFactor limits the time spent on writing: after a write that took d, the next one waits at least
	// backoffFactor times d, so a slow disk is not kept busy.
	backoffFactor = 20
	// maxBytesPerSecond limits what is written, on average. The whole file is written however few members have changed.
	maxBytesPerSecond = 1 << 20
)

// Projector keeps config.json up to date until ctx ends, and then writes it a last time. It writes at most once a
// second, and with thousands of members, whose file is large, at most a megabyte a second.
func (r *Roster) Projector(ctx context.Context) {
	changed := r.members.Watch(ctx)
	for ctx.Err() == nil {
		began := time.Now()
		size, err := r.project(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(max(time.Second, backoffFactor*time.Since(began),
			time.Duration(size)*time.Second/maxBytesPerSecond)):
		}
		if err != nil {
			continue // what could not be written is tried again without a change
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = r.project(last)
}
