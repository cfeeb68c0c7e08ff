package mem

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"muster"
)

// inbox is the state as boxes.
type inbox struct{ st *state }

// box is the pending mail of one member. A place is the number of mails before it, dropped ones too.
type box struct {
	mails []muster.Message
	first muster.Pos
	hints hints
}

// get returns the box; the state's lock is held.
func (i inbox) get(name muster.Name) *box {
	b := i.st.boxes[name]
	if b == nil {
		b = &box{hints: hints{}}
		i.st.boxes[name] = b
	}
	return b
}

// Put adds m.
func (i inbox) Put(ctx context.Context, name muster.Name, m muster.Message) error {
	if err := checkBox(ctx, name); err != nil {
		return err
	}
	m, err := asRead(name, m)
	if err != nil {
		return err
	}
	i.st.mu.Lock()
	defer i.st.mu.Unlock()
	b := i.get(name)
	if m.ID == "" { // as a reader of the file engine sees it: an id that stays, and repeats for no other mail
		m.ID = muster.MessageID("place-" + strconv.FormatUint(uint64(b.first)+uint64(len(b.mails)), 10))
	}
	b.mails = append(b.mails, clone(m))
	b.hints.tell()
	return nil
}

// Peek returns at most max pending mails after the place.
func (i inbox) Peek(
	ctx context.Context, name muster.Name, after muster.Pos, max int,
) ([]muster.Message, muster.Pos, error) {
	if err := checkBox(ctx, name); err != nil {
		return nil, after, err
	}
	i.st.mu.Lock()
	defer i.st.mu.Unlock()
	b := i.get(name)
	from := int(min(after-min(after, b.first), muster.Pos(len(b.mails))))
	var out []muster.Message
	for _, m := range b.mails[from:] {
		if len(out) >= max {
			break
		}
		out = append(out, clone(m))
	}
	if len(out) == 0 {
		return nil, after, nil
	}
	return out, b.first + muster.Pos(from+len(out)), nil
}

// Drop removes what lies before the place.
func (i inbox) Drop(ctx context.Context, name muster.Name, before muster.Pos) error {
	if err := checkBox(ctx, name); err != nil {
		return err
	}
	i.st.mu.Lock()
	defer i.st.mu.Unlock()
	b := i.get(name)
	if before > b.first {
		n := min(before-b.first, muster.Pos(len(b.mails)))
		b.mails = b.mails[n:]
		b.first += n
	}
	return nil
}

// Watch receives after new mail until ctx ends.
func (i inbox) Watch(ctx context.Context, name muster.Name) <-chan struct{} {
	i.st.mu.Lock()
	b := i.get(name)
	i.st.mu.Unlock()
	return b.hints.watch(ctx, &i.st.mu)
}

// asRead is m as a reader of another engine would have it: through its JSON.
func asRead(name muster.Name, m muster.Message) (muster.Message, error) {
	line, err := muster.MarshalLine(m)
	if err == nil {
		m = muster.Message{}
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		return m, muster.Errorf(muster.Invalid, "this cannot be mailed to %s: %w", name, err)
	}
	if m.To == "" {
		m.To = name
	}
	return m, nil
}

// checkBox refuses the same names as the file engine, so that what works in a test works on the disk.
func checkBox(ctx context.Context, name muster.Name) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.Contains(string(name), ".") {
		return muster.Errorf(muster.Invalid, "%q cannot be the name of an inbox: %s", name, muster.NameRule)
	}
	return checkName("the name of an inbox", string(name))
}

// clone copies a message with what it points to. No caller can change what is stored.
func clone(m muster.Message) muster.Message {
	if m.Approve != nil {
		yes := *m.Approve
		m.Approve = &yes
	}
	return m
}
