package roster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/editdist"
)

// configKey is config.json among the documents of the team: the roster as other programs read it. It is made from the
// members and never read back for them. Members that it has and that are not ours can get mail.
const configKey = "config"

// configDoc is the content of config.json. What others wrote is kept as raw text, so that it is written back as it was.
type configDoc struct {
	fields  muster.Extra      // all fields of the document
	members []json.RawMessage // its field members
}

// parseConfig reads config.json.
func parseConfig(data []byte) (c configDoc, err error) {
	if err = json.Unmarshal(data, &c.fields); err == nil && c.fields["members"] != nil {
		err = json.Unmarshal(c.fields["members"], &c.members)
	}
	if err != nil {
		return configDoc{}, muster.Errorf(muster.Corrupt, "config.json cannot be read: %w", err)
	}
	return c, nil
}

// nameOf returns the name of an entry, "" if it has none that can be read.
func nameOf(entry json.RawMessage) muster.Name {
	var m struct {
		Name muster.Name `json:"name"`
	}
	if json.Unmarshal(entry, &m) != nil {
		return ""
	}
	return m.Name
}

// render returns config.json with the members: first the entries that are not ours, as they are, then the teammates by
// the time they joined. The lead is not one of them.
func (c configDoc) render(team muster.Name, all []*muster.Member) ([]byte, error) {
	old := map[muster.Name]json.RawMessage{} // what the file has of our members
	for _, m := range all {
		old[m.Name] = nil
	}
	entries := []json.RawMessage{}
	for _, raw := range c.members {
		if _, isOurs := old[nameOf(raw)]; isOurs {
			old[nameOf(raw)] = raw
		} else {
			entries = append(entries, raw)
		}
	}
	for _, m := range all {
		if m.Name == muster.Lead {
			continue
		}
		entry, err := renderMember(m, old[m.Name])
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	whole, err := muster.MarshalLine(struct {
		Team    muster.Name       `json:"team_name"`
		Members []json.RawMessage `json:"members"`
	}{team, entries})
	if err != nil {
		return nil, err
	}
	// What other programs have added to the document comes after our own two fields.
	delete(c.fields, "team_name")
	delete(c.fields, "members")
	if len(c.fields) > 0 {
		rest, err := muster.MarshalLine(c.fields)
		if err != nil {
			return nil, err
		}
		whole = slices.Concat(whole[:len(whole)-1], []byte{','}, rest[1:])
	}
	return muster.Encode(json.RawMessage(whole))
}

// renderMember returns the entry of a member, with the fields that other programs added to the old one. What only the
// team itself needs, such as the host and the prompt, is not shown.
func renderMember(m *muster.Member, old json.RawMessage) (json.RawMessage, error) {
	var was muster.Member
	if old != nil && json.Unmarshal(old, &was) != nil {
		was.Extra = nil // of an entry that is no member nothing is kept
	}
	return muster.Member{Name: m.Name, Role: m.Role, Status: m.Status, IdleReason: m.IdleReason,
		Doing: m.Doing, AgentID: m.AgentID, Model: m.Model, JoinedAt: m.JoinedAt, Extra: was.Extra}.MarshalJSON()
}

// Project writes config.json from the members. Nothing is written when nothing changed. A file that cannot be read is
// kept in the table of what was damaged, and written anew. Errors: Corrupt when it cannot be replaced.
func (r *Roster) Project(ctx context.Context) error {
	for {
		// The file is read before the members: what is newer than they are then changes the file's revision, and a late
		// process never replaces a newer state by an older one.
		doc, err := r.config.Get(ctx, configKey)
		var c configDoc
		if err == nil {
			c, err = parseConfig(doc.Data)
		}
		if errors.Is(err, muster.ErrCorrupt) {
			err = r.keepDamaged(ctx, r.config, muster.TableTeam, configKey, err)
		}
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
		var all []*muster.Member
		err = r.members.ViewFresh(ctx, func() {
			r.index.sort()
			all = slices.Clone(r.index.ordered)
		})
		if err != nil {
			return err
		}
		data, err := c.render(r.team, all)
		if err != nil || bytes.Equal(data, doc.Data) {
			return err
		}
		if _, err = r.config.Put(ctx, configKey, data, doc.Rev); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// Projector keeps config.json up to date until ctx ends, and then writes it a last time. It writes at most
// once a second.
func (r *Roster) Projector(ctx context.Context) {
	changed := r.members.Watch(ctx)
	for ctx.Err() == nil {
		err := r.Project(ctx)
		if clock.Sleep(ctx, time.Second) != nil || err != nil {
			continue // what could not be written is tried again without a change
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	// The last write shows how the members ended. It must not be lost with ctx, and must not delay the end
	// for long.
	last, cancel := clock.Detach(ctx)
	defer cancel()
	_ = r.Project(last)
}

// neighbours returns the names in config.json of members that are not ours. One that cannot be read has none.
func (r *Roster) neighbours(ctx context.Context) (names []muster.Name, err error) {
	doc, err := r.config.Get(ctx, configKey)
	if err != nil {
		if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
			err = nil
		}
		return nil, err
	}
	c, _ := parseConfig(doc.Data)
	for _, raw := range c.members {
		if name := nameOf(raw); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// Known reports whether mail can go to the name: a member, lead, user, or one that another program wrote
// into config.json. If not, near are at most three names like it, the likest first.
func (r *Roster) Known(ctx context.Context, name muster.Name) (known bool, near []muster.Name, err error) {
	if name == muster.Lead || name == muster.User {
		return true, nil, nil
	}
	switch _, _, err := r.read(ctx, name); {
	case err == nil, errors.Is(err, muster.ErrCorrupt): // it is there, though nobody can read it now
		return true, nil, nil
	case !errors.Is(err, muster.ErrNotFound):
		return false, nil, err
	}
	names, err := r.neighbours(ctx)
	if err != nil {
		return false, nil, err
	}
	if slices.Contains(names, name) {
		return true, nil, nil
	}
	// Nobody has the name, so the cost of a look at all members is paid for mistyped names only.
	all, err := r.List(ctx)
	if err != nil {
		return false, nil, err
	}
	names = append(names, muster.Lead, muster.User) // the names that it may have been meant to be
	for _, m := range all {
		names = append(names, m.Name)
	}
	return false, like(name, names), nil
}

// like returns at most three of the names, the likest first: those that differ from name by what a typo
// makes. It changes the list.
func like(name muster.Name, names []muster.Name) []muster.Name {
	typed := strings.ToLower(string(name))
	most := 2 // mistakes; in a short name a second one makes another name
	if len(typed) <= 4 {
		most = 1
	}
	distance := func(n muster.Name) int { return editdist.Distance(typed, strings.ToLower(string(n))) }
	names = slices.DeleteFunc(names, func(n muster.Name) bool { return distance(n) > most })
	slices.SortFunc(names, func(a, b muster.Name) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b))
	})
	names = slices.Compact(names)
	return names[:min(3, len(names))]
}
