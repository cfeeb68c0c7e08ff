package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"muster"
)

// page is config.json as this process last read or wrote it, row by row. When one member of thousands changes, only its
// row is encoded again. The file may have changed since, so it is written over the revision that it was read at, and
// read again when that is stale.
type page struct {
	team  muster.Name
	table muster.Table
	index *index

	turn       chan struct{} // one projection at a time
	data       []byte        // the whole, as the rows have it; nil: nothing was read yet
	spare      []byte        // the whole before that: room for the next
	rev        muster.Rev    // of data, while current
	current    bool          // data was config.json when it was last looked at
	head, tail []byte        // what is around the members: the team's name, and fields that others added
	rows       []row         // first those of other programs, then one for each member, the lead too
	foreign    int           // how many are other programs'; -1: not known, the file was just read
}

// row is one member in config.json.
type row struct {
	name  muster.Name // "": no member as we know them
	text  []byte      // as it lies there, with all that others added; nil: it has none there, as the lead
	shown shown       // what it is to say of a member of ours
	done  bool        // text says it, in our form
}

func newPage(team muster.Name, config muster.Table, x *index) *page {
	return &page{team: team, table: config, index: x, turn: make(chan struct{}, 1)}
}

// project makes config.json what the members are, and returns its size.
func (p *page) project(ctx context.Context) (size int, err error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-p.turn }()
	for look := !p.current; ; look = true {
		// The file before the members: what is newer than they are changes the file's revision.
		if look {
			if err := p.look(ctx); err != nil {
				return 0, err
			}
		}
		if err := p.index.visit(ctx, p.arrange); err != nil {
			return 0, err
		}
		data, err := p.render()
		if err != nil {
			p.data, p.current = nil, false // the rows are not of what it was
			return 0, err
		}
		if bytes.Equal(data, p.data) {
			if p.spare = data; look {
				return len(data), nil
			}
			continue // nothing has changed here; perhaps another program wrote something else
		}
		p.data, p.spare = data, p.data
		p.rev, err = p.table.Put(ctx, configKey, data, p.rev)
		if p.current = err == nil; !errors.Is(err, muster.ErrStale) {
			return len(data), err
		}
	}
}

// look reads the file, unless it says what is known.
func (p *page) look(ctx context.Context) error {
	p.current = false
	d, err := p.table.Get(ctx, configKey)
	missing := errors.Is(err, muster.ErrNotFound)
	switch {
	case missing:
		d = muster.Doc{Data: []byte("{}")}
	case err != nil:
		return err
	}
	if p.data == nil || !bytes.Equal(d.Data, p.data) {
		f, err := parse(d.Data)
		if err == nil {
			err = p.take(f)
		}
		if err != nil {
			return err
		}
		p.data = append(p.data[:0], d.Data...)
	}
	p.rev, p.current = d.Rev, true
	return nil
}

// take makes the page what the file is. Of rows that are as we wrote them it is still known what they say: another
// process of the team writes the same ones.
func (p *page) take(f document) error {
	head, err := muster.MarshalLine(struct {
		Team    muster.Name `json:"team_name"`
		Members [0]int      `json:"members"`
	}{Team: p.team})
	if err != nil {
		return err
	}
	rest, err := muster.MarshalLine(f.rest)
	if err != nil {
		return err
	}
	if head, err = withRest(head, rest, []string{"team_name", "members"}); err != nil {
		return err
	}
	if head, err = muster.Encode(json.RawMessage(head)); err != nil {
		return err
	}
	const none = `"members": []`
	at := bytes.Index(head, []byte(none)) + len(none) - 1
	was := make(map[muster.Name]row, len(p.rows))
	for _, r := range p.rows {
		was[r.name] = r
	}
	p.head, p.tail, p.foreign = head[:at], head[at:], -1
	p.rows = make([]row, 0, len(f.members))
	for _, e := range f.members {
		if r := was[e.name]; r.done && bytes.Equal(r.text, e.raw) {
			p.rows = append(p.rows, r)
		} else {
			p.rows = append(p.rows, row{name: e.name, text: e.raw})
		}
	}
	return nil
}

// arrange puts the rows into the order of the members, and notes what each is to say.
func (p *page) arrange(all []muster.Member) {
	if !p.arranged(all) {
		p.rearrange(all)
	}
	for i := range all {
		r := &p.rows[p.foreign+i]
		if s := show(&all[i]); r.shown != s {
			r.shown, r.done = s, false
		}
	}
}

// arranged reports whether the rows are those of the members.
func (p *page) arranged(all []muster.Member) bool {
	if p.foreign < 0 || len(p.rows) != p.foreign+len(all) {
		return false
	}
	for i := range all {
		if p.rows[p.foreign+i].name != all[i].Name {
			return false
		}
	}
	return true
}

// rearrange makes the rows anew: whose is no member's, is another program's.
func (p *page) rearrange(all []muster.Member) {
	ours := make(map[muster.Name]row, len(all))
	for i := range all {
		ours[all[i].Name] = row{name: all[i].Name}
	}
	rows := make([]row, 0, len(all)+p.foreign+1)
	for _, r := range p.rows {
		if _, is := ours[r.name]; !is && r.text != nil {
			rows = append(rows, r)
		} else if is && r.name != muster.Lead {
			ours[r.name] = r
		}
	}
	p.foreign = len(rows)
	for i := range all {
		rows = append(rows, ours[all[i].Name])
	}
	p.rows = rows
}

// render is config.json as the rows have it.
func (p *page) render() ([]byte, error) {
	data := append(p.spare[:0], p.head...)
	between := "\n    "
	for i := range p.rows {
		r := &p.rows[i]
		if i >= p.foreign && r.name == muster.Lead {
			continue
		}
		if !r.done {
			if err := r.render(i >= p.foreign); err != nil {
				return nil, err
			}
		}
		data = append(append(data, between...), r.text...)
		between = ",\n    "
	}
	if between[0] == ',' {
		data = append(data, "\n  "...)
	}
	return append(data, p.tail...), nil
}

// render makes the row's text: a member of ours as it is now, with the fields that others added; another's as it was.
func (r *row) render(ours bool) (err error) {
	raw := r.text
	if ours {
		if raw, err = muster.MarshalLine(r.shown); err != nil {
			return err
		}
		if raw, err = withRest(raw, r.text, shownFields); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "    ", "  "); err != nil {
		return err
	}
	r.text, r.done = bytes.Clone(b.Bytes()), true
	return nil
}
