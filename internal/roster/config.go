package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"muster"
	"muster/internal/clock"
)

// configKey is config.json among the documents of the team.
const configKey = "config"

// memberFields are the fields that we write of a member. All others in a member's entry belong to other
// programs.
var memberFields = []string{"name", "role", "status", "idle_reason", "doing", "agent_id", "model", "joined_at"}

// configDoc is the content of config.json. Values that others wrote are kept as raw text, so that they are
// written back as they were, with numbers and unknown fields untouched.
type configDoc struct {
	rest    map[string]json.RawMessage // fields that others added
	members []configEntry
}

// configEntry is one member in config.json, ours or another program's.
type configEntry struct {
	name muster.Name
	raw  json.RawMessage
}

// parseConfig reads config.json. A member of another program that has no readable name is kept with the
// name "".
func parseConfig(data []byte) (f configDoc, err error) {
	var members []json.RawMessage
	if err = json.Unmarshal(data, &f.rest); err == nil && f.rest["members"] != nil {
		err = json.Unmarshal(f.rest["members"], &members)
	}
	if err != nil {
		return configDoc{}, muster.Errorf(muster.Corrupt, "config.json cannot be read: %w", err)
	}
	for _, raw := range members {
		var m struct {
			Name muster.Name `json:"name"`
		}
		if json.Unmarshal(raw, &m) != nil {
			m.Name = "" // no member as we know them; kept all the same
		}
		f.members = append(f.members, configEntry{m.Name, raw})
	}
	return f, nil
}

// renderConfig returns config.json for the members, when old is its content now. What other programs wrote
// stays: their members come first, in their order, then the teammates by the time they joined. The lead is
// not one of them.
func renderConfig(team muster.Name, old []byte, all []muster.Member) ([]byte, error) {
	f, err := parseConfig(old)
	if err != nil {
		return nil, err
	}
	ours := make(map[muster.Name]json.RawMessage, len(all)) // each member's entry in old; nil when it has none
	for _, m := range all {
		ours[m.Name] = nil
	}
	members := []any{}
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
		var rest muster.Extra // of an entry that is no object nothing is kept
		if raw := ours[m.Name]; raw != nil && json.Unmarshal(raw, &rest) != nil {
			rest = nil
		}
		// A field of ours is never taken from rest: one that is left out now, such as the reason of a member that
		// is idle no more, is to go.
		for _, name := range memberFields {
			delete(rest, name)
		}
		// What only the team itself needs, such as the host and the prompt, is not shown.
		members = append(members, muster.Member{Name: m.Name, Role: m.Role, Status: m.Status, IdleReason: m.IdleReason,
			Doing: m.Doing, AgentID: m.AgentID, Model: m.Model, JoinedAt: m.JoinedAt, Extra: rest})
	}
	whole, err := muster.MarshalLine(struct {
		Team    muster.Name `json:"team_name"`
		Members []any       `json:"members"`
	}{team, members})
	if err != nil {
		return nil, err
	}
	delete(f.rest, "team_name")
	delete(f.rest, "members")
	if len(f.rest) > 0 {
		rest, err := muster.MarshalLine(f.rest)
		if err != nil {
			return nil, err
		}
		whole = slices.Concat(whole[:len(whole)-1], []byte{','}, rest[1:])
	}
	return muster.Encode(json.RawMessage(whole))
}

// configFile is config.json. The whole file is made anew each time: that takes some milliseconds for a
// thousand members, and Projector writes at most once a second.
type configFile struct {
	table muster.Table
	turn  chan struct{} // held by the one projection that runs in this process
	last  muster.Doc    // what the process last read or wrote, so that it need not read it again; guarded by turn
}

// Project writes config.json from the members. Nothing is written when nothing changed. Errors: Corrupt
// when the file that is there cannot be read; it is left alone, and that is reported once.
func (r *Roster) Project(ctx context.Context) error {
	_, err := r.project(ctx)
	return err
}

// project is Project, and returns the size of the file in bytes.
func (r *Roster) project(ctx context.Context) (size int, err error) {
	select {
	case r.config.turn <- struct{}{}:
		size, err = r.writeConfig(ctx)
		<-r.config.turn
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if errors.Is(err, muster.ErrCorrupt) {
		_ = r.docs.Refresh(ctx) // reports it
	}
	return size, err
}

// writeConfig is project for whoever holds the turn. It writes over the revision that it read, and reads again
// when that is stale, so a late process never replaces a newer state by an older one.
func (r *Roster) writeConfig(ctx context.Context) (size int, err error) {
	c := &r.config
	doc := c.last
	c.last = muster.Doc{} // so that the file is read again after an error: somebody may have mended it
	for isFresh := doc.Data == nil; ; isFresh = true {
		// The file is read before the members: what is newer than they are then changes the file's
		// revision.
		if isFresh {
			doc, err = c.table.Get(ctx, configKey)
			if errors.Is(err, muster.ErrNotFound) {
				doc = muster.Doc{Data: []byte("{}")}
			} else if err != nil {
				return 0, err
			}
		}
		all, err := r.List(ctx)
		if err != nil {
			return 0, err
		}
		data, err := renderConfig(r.team, doc.Data, all)
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(data, doc.Data) {
			// The write fails if anybody has written the file since it was read: another process of the team,
			// or another program whose members would be lost otherwise.
			doc.Rev, err = c.table.Put(ctx, configKey, data, doc.Rev)
			if errors.Is(err, muster.ErrStale) {
				continue
			}
		} else if !isFresh {
			continue // nothing has changed here; perhaps another program wrote something else
		}
		if err == nil {
			c.last = muster.Doc{Rev: doc.Rev, Data: data}
		}
		return len(data), err
	}
}

const (
	// backoffFactor limits the time spent on writing: after a write that took d, the next one waits at
	// least backoffFactor times d, so a slow disk is not kept busy.
	backoffFactor = 20
	// maxBytesPerSecond limits what is written, on average. The whole file is written however few members
	// have changed.
	maxBytesPerSecond = 1 << 20
)

// Projector keeps config.json up to date until ctx ends, and then writes it a last time. It writes at most
// once a second, and with thousands of members, whose file is large, at most a megabyte a second.
func (r *Roster) Projector(ctx context.Context) {
	changed := r.members.Watch(ctx)
	for ctx.Err() == nil {
		began := time.Now()
		size, err := r.project(ctx)
		pause := max(time.Second, backoffFactor*time.Since(began), time.Duration(size)*time.Second/maxBytesPerSecond)
		if clock.Sleep(ctx, pause) != nil || err != nil {
			continue // what could not be written is tried again without a change
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	// The last write shows how the members ended. It must not be lost with ctx, and must not delay the end
	// for long.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = r.project(last)
}
