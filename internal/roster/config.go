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
	"muster/internal/state"
)

// configKey is config.json among the documents of the team. The file is for people and for other programs. The
// team decides nothing by what it says of our members.
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
	of   *muster.Member // what this process made raw of; nil when it read raw from the file
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
		f.members = append(f.members, configEntry{name: m.Name, raw: raw})
	}
	return f, nil
}

// render returns config.json for the members, and its content, when f is its content now. What other programs
// wrote stays: their members come first, in their order, then the teammates by the time they joined. The lead
// is not one of them. The entries of members that have not changed are those of f.
func (f configDoc) render(team muster.Name, all []*muster.Member) (data []byte, next configDoc, err error) {
	ours := make(map[muster.Name]configEntry, len(all)) // each member's entry in f; empty when it has none
	for _, m := range all {
		ours[m.Name] = configEntry{}
	}
	next.rest, next.members = f.rest, []configEntry{}
	for _, e := range f.members {
		if _, is := ours[e.name]; is {
			ours[e.name] = e
		} else {
			next.members = append(next.members, e)
		}
	}
	for _, m := range all {
		e := ours[m.Name]
		if m.Name == muster.Lead {
			continue
		}
		if e.of != m {
			if e, err = e.update(m); err != nil {
				return nil, next, err
			}
		}
		next.members = append(next.members, e)
	}
	whole, err := muster.MarshalLine(struct {
		Team    muster.Name   `json:"team_name"`
		Members []configEntry `json:"members"`
	}{team, next.members})
	if err != nil {
		return nil, next, err
	}
	// What other programs have added to the document comes after our own two fields.
	delete(next.rest, "team_name")
	delete(next.rest, "members")
	if len(next.rest) > 0 {
		rest, err := muster.MarshalLine(next.rest)
		if err != nil {
			return nil, next, err
		}
		whole = slices.Concat(whole[:len(whole)-1], []byte{','}, rest[1:])
	}
	data, err = muster.Encode(json.RawMessage(whole))
	return data, next, err
}

// MarshalJSON returns the entry as config.json has it.
func (e configEntry) MarshalJSON() ([]byte, error) { return e.raw, nil }

// update returns the entry as it is for m. It keeps the fields that other programs added.
func (e configEntry) update(m *muster.Member) (configEntry, error) {
	var rest muster.Extra // of an entry that is no object nothing is kept
	if e.raw != nil && json.Unmarshal(e.raw, &rest) != nil {
		rest = nil
	}
	// A field of ours is never taken from rest: one that is left out now, such as the reason of a member that
	// is idle no more, is to go.
	for _, name := range memberFields {
		delete(rest, name)
	}
	// What only the team itself needs, such as the host and the prompt, is not shown.
	// The fields of the type come in the order of memberFields, and those of rest after them, by name.
	raw, err := muster.Member{Name: m.Name, Role: m.Role, Status: m.Status, IdleReason: m.IdleReason,
		Doing: m.Doing, AgentID: m.AgentID, Model: m.Model, JoinedAt: m.JoinedAt, Extra: rest}.MarshalJSON()
	return configEntry{m.Name, raw, m}, err
}

// configFile is config.json. The whole file is made anew each time: that takes some milliseconds for a
// thousand members, and Projector writes at most once a second.
type configFile struct {
	table muster.Table
	turn  chan struct{} // held by the one projection that runs in this process
	last  muster.Doc    // what the process last wrote, so that it need not read it again; guarded by turn
	doc   configDoc     // the content of last
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
	last, doc := c.last, c.doc
	c.last = muster.Doc{} // so that the file is read again after an error: somebody may have mended it
	for isFresh := last.Data == nil; ; isFresh = true {
		// The file is read before the members: what is newer than they are then changes the file's
		// revision.
		if isFresh {
			last, err = c.table.Get(ctx, configKey)
			if errors.Is(err, muster.ErrNotFound) {
				last = muster.Doc{Data: []byte("{}")}
			} else if err != nil {
				return 0, err
			}
			if doc, err = parseConfig(last.Data); err != nil {
				return 0, err
			}
		}
		var all []*muster.Member
		err := r.members.ViewFresh(ctx, func() {
			r.index.sort()
			all = slices.Clone(r.index.ordered)
		})
		if err != nil {
			return 0, err
		}
		data, next, err := doc.render(r.team, all)
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(data, last.Data) {
			// The write fails if anybody has written the file since it was read: another process of the team,
			// or another program whose members would be lost otherwise.
			last.Rev, err = c.table.Put(ctx, configKey, data, last.Rev)
			if errors.Is(err, muster.ErrStale) {
				continue
			}
		} else if !isFresh {
			if now, err := c.table.Get(ctx, configKey); err != nil || now.Rev != last.Rev {
				continue // nothing has changed here, but another program wrote something else
			}
		}
		if err == nil {
			c.last, c.doc = muster.Doc{Rev: last.Rev, Data: data}, next
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
	last, cancel := clock.Detach(ctx)
	defer cancel()
	_, _ = r.project(last)
}

// decodeTeamDoc reads a document of the team's table. The collection of them exists for two things: it keeps
// the members in config.json, ours and those of other programs, and it reports a document that cannot
// be read. Of the run's record decodeTeamDoc only says whether it can be read.
func decodeTeamDoc(key string, data []byte) (members []muster.Member, err error) {
	if key != configKey {
		if err := json.Unmarshal(data, &muster.Run{}); err != nil {
			return nil, muster.Errorf(muster.Corrupt, "the run's record (run.json) cannot be read: %w", err)
		}
		return nil, nil
	}
	f, err := parseConfig(data)
	for _, e := range f.members {
		if e.name == "" {
			continue
		}
		var m muster.Member
		if json.Unmarshal(e.raw, &m) != nil {
			m = muster.Member{} // a field of it is of another kind than ours; the name is known
		}
		// What else a program says of its member, such as a host or a task, is not believed.
		members = append(members, muster.Member{Name: e.name, Role: m.Role, Status: m.Status})
	}
	return members, err
}

// onTeamDoc follows a change of config.json. A file that cannot be read leaves the names that it had
// before, so that a name that another program uses does not become free while that program writes the file.
func (r *Roster) onTeamDoc(c state.Change[[]muster.Member]) {
	switch {
	case c.Key != configKey || c.Err != nil:
	case c.New == nil:
		r.listed = nil
	default:
		r.listed = *c.New
	}
}

// foreign returns those members that other programs wrote into config.json whose names are wanted. The
// refresh also reports documents of the team that cannot be read.
func (r *Roster) foreign(ctx context.Context, wanted func(muster.Name) bool) (names []muster.Name, err error) {
	var found []muster.Member
	err = r.docs.ViewFresh(ctx, func() {
		for _, m := range r.listed {
			if wanted(m.Name) {
				found = append(found, m)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	found, err = withoutOurs(ctx, r, found)
	for _, m := range found {
		names = append(names, m.Name)
	}
	return names, err
}

// Foreign returns the members that other programs have written into config.json: their names, roles and statuses, in
// their order. Each name occurs once. It reports nothing: a file that cannot be read has none.
func (r *Roster) Foreign(ctx context.Context) ([]muster.Member, error) {
	doc, err := r.config.table.Get(ctx, configKey)
	if errors.Is(err, muster.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	listed, _ := decodeTeamDoc(configKey, doc.Data)
	return withoutOurs(ctx, r, listed)
}

// withoutOurs returns those of the members that are not members of ours, each once.
func withoutOurs(ctx context.Context, r *Roster, all []muster.Member) (found []muster.Member, err error) {
	seen := map[muster.Name]bool{}
	for _, m := range all {
		if !seen[m.Name] {
			seen[m.Name] = true
			found = append(found, m)
		}
	}
	if found == nil { // as nearly always: the members need not be looked at
		return nil, nil
	}
	err = r.members.ViewFresh(ctx, func() {
		ours := make(map[muster.Name]bool, len(r.index.ordered))
		for _, m := range r.index.ordered {
			ours[m.Name] = true
		}
		found = slices.DeleteFunc(found, func(m muster.Member) bool { return m.Name == muster.Lead || ours[m.Name] })
	})
	return found, err
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
	foreign, err := r.foreign(ctx, func(muster.Name) bool { return true })
	if err != nil {
		return false, nil, err
	}
	if slices.Contains(foreign, name) {
		return true, nil, nil
	}
	// Nobody has the name, so the cost of a look at all members is paid for mistyped names only.
	all, err := r.List(ctx)
	if err != nil {
		return false, nil, err
	}
	names := append(foreign, muster.Lead, muster.User) // the names that it may have been meant to be
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
