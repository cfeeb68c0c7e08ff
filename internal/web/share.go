package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/difflines"
	"muster/internal/face"
	"muster/internal/redact"
	"muster/internal/secrets"
)

// The limits of a shared run.
const (
	// mostFrames is the number of times whose states are in the file, without those of landings. The slider of a long
	// run has about as many positions.
	mostFrames = 1000
	// mostPlain is the size in bytes up to which data stands in the file as it is, so that people can search it.
	// Larger data is compressed.
	mostPlain = 1 << 20
)

// Shared says what a shared run has, and what was hidden in it.
type Shared struct {
	Team       muster.Name `json:"team"`
	StartedAt  time.Time   `json:"started_at"`
	EndedAt    time.Time   `json:"ended_at"`
	IsUnderWay bool        `json:"under_way"` // a process works on the run, and EndedAt is now
	Members    int         `json:"members"`
	Tasks      int         `json:"tasks"`
	Diffs      int         `json:"diffs"`
	Entries    int         `json:"entries"` // of the conversations
	Mails      int         `json:"mails"`
	Events     int         `json:"events"`
	// Hidden is the number of places where redact.Mark stands, and HomePaths that of the paths that were shortened.
	Hidden       int  `json:"hidden"`
	HomePaths    int  `json:"home_paths"`
	Bytes        int  `json:"bytes"`
	IsCompressed bool `json:"compressed"`
}

// Share returns the page of the last run as one HTML document that needs no server: the page's own files, and what the
// server would answer to a page that only replays. Secrets are hidden: hide's, and what looks like a key by the rules
// for what is to land. home is shortened to "~".
//
// A team may be at work meanwhile. Its run is shown as it is now. The server can only replay afterwards.
func (s *Server) Share(ctx context.Context, hide *redact.Secrets, home string) ([]byte, Shared, error) {
	run, err := s.team.LastRun(ctx)
	if err != nil {
		return nil, Shared{}, err
	}
	if run.StartedAt == 0 {
		return nil, Shared{}, muster.Errorf(muster.NotFound, "there is nothing to share: no run has begun here").
			WithHint(`muster run "GOAL"`)
	}
	b := &sharing{Server: s, run: run, positions: map[string]int{}, answers: map[string]any{}}
	for _, gather := range []func(context.Context) error{b.present, b.past, b.tasks, b.conversations, b.inboxes} {
		if err := gather(ctx); err != nil {
			return nil, Shared{}, err
		}
	}
	data, err := b.redact(hide, home)
	if err != nil {
		return nil, Shared{}, err
	}
	kind := "application/json"
	if len(data) > mostPlain {
		kind, b.said.IsCompressed = "text/plain", true
		if data, err = compressed(data); err != nil {
			return nil, Shared{}, err
		}
	}
	page, err := inline(kind, data)
	b.said.Bytes = len(page)
	return page, b.said, err
}

// sharing gathers the data of a shared run.
type sharing struct {
	*Server
	run  muster.Run
	said Shared

	answers   map[string]any // by the path that the page asks for
	frames    []frame
	positions map[string]int // of the values of frames, by their JSON
	order     []json.RawMessage
	events    []face.Event
	members   []muster.Name // that were there at any time
	cards     []muster.TaskID
}

// frame is the state at a time. Its fields name their values by positions: one, or one for each element of a list.
type frame struct {
	At     float64        `json:"at"`
	Fields map[string]any `json:"fields"`
}

// asPage returns a request as a page would make it. The handlers look at its context and its values alone.
func asPage(ctx context.Context) *http.Request {
	return (&http.Request{Method: http.MethodGet}).WithContext(ctx)
}

// present adds what the page asks for first.
func (b *sharing) present(ctx context.Context) error {
	// The page is one of a replay: it follows nothing, and offers nothing that would change a team.
	b.Replay = true
	now, err := b.state(asPage(ctx))
	if err != nil {
		return err
	}
	v, ok := now.(state)
	if !ok {
		return fmt.Errorf("a state is a %T", now)
	}
	v.SharedAt = muster.UnixTime(b.Now())
	over, err := b.history(asPage(ctx))
	if err != nil {
		return err
	}
	h, ok := over.(history)
	if !ok {
		return fmt.Errorf("a history is a %T", over)
	}
	b.said.IsUnderWay, err = b.team.Members().HasProcess(ctx)
	b.said.Team, b.said.StartedAt, b.said.EndedAt = v.Team, muster.Time(h.From), muster.Time(h.To)
	b.answers["api/state"], b.answers["api/history"] = v, h
	return err
}

// past adds the states at the times at which something has happened, and the timeline.
func (b *sharing) past(ctx context.Context) error {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.replay = nil
	times, err := b.times(ctx)
	if err != nil {
		return err
	}
	for _, at := range times {
		v, err := b.pastAt(ctx, at, 0)
		if err != nil {
			return err
		}
		for _, m := range v.Members {
			if !slices.Contains(b.members, m.Name) {
				b.members = append(b.members, m.Name)
			}
		}
		b.cards = b.cards[:0]
		for _, t := range v.Tasks {
			b.cards = append(b.cards, t.ID)
		}
		if err := b.addFrame(at, v); err != nil {
			return err
		}
	}
	b.events = append([]face.Event{}, b.replay.lines...)
	b.said.Members, b.said.Tasks, b.said.Events = len(b.members), len(b.cards), len(b.events)
	return nil
}

// times returns the times whose states are shared, in order: the beginning, each landing, and the last event of each
// of mostFrames parts of the run.
func (b *sharing) times(ctx context.Context) (times []float64, err error) {
	var all []float64
	landed := map[float64]bool{}
	for e, err := range b.team.Journal().Read(ctx, 0) {
		if errors.Is(err, muster.ErrCorrupt) || err == nil && e.At < b.run.StartedAt {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e.At)
	}
	if h, ok := b.answers["api/history"].(history); ok {
		for _, l := range h.Landings {
			landed[l.At] = true
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	times = []float64{b.run.StartedAt}
	if len(all) == 0 {
		return times, nil
	}
	length := max(all[len(all)-1]-b.run.StartedAt, 1)
	part := func(at float64) int { return int(mostFrames * (at - b.run.StartedAt) / length) }
	for i, at := range all {
		isLast := i == len(all)-1 || part(all[i+1]) != part(at)
		if at > b.run.StartedAt && (isLast || landed[at]) {
			times = append(times, at)
		}
	}
	return times, nil
}

// addFrame adds a state. Most of it is as in the frame before, so each value is there once.
func (b *sharing) addFrame(at float64, v state) error {
	data, err := muster.MarshalLine(v)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	delete(fields, "now") // the time of the frame
	f := frame{at, map[string]any{}}
	for name, value := range fields {
		var list []json.RawMessage
		if value[0] != '[' {
			f.Fields[name] = b.position(value)
		} else if err := json.Unmarshal(value, &list); err != nil {
			return err
		} else {
			positions := make([]int, len(list))
			for i, x := range list {
				positions[i] = b.position(x)
			}
			f.Fields[name] = positions
		}
	}
	b.frames = append(b.frames, f)
	return nil
}

// position returns the position of a value among the values.
func (b *sharing) position(value json.RawMessage) int {
	i, ok := b.positions[string(value)]
	if !ok {
		i = len(b.order)
		b.positions[string(value)], b.order = i, append(b.order, value)
	}
	return i
}

// tasks adds the tasks of the run with their differences.
func (b *sharing) tasks(ctx context.Context) error {
	for _, id := range b.cards {
		r := asPage(ctx)
		r.SetPathValue("id", fmt.Sprint(id))
		v, err := b.task(r)
		if errors.Is(err, muster.ErrNotFound) { // it was deleted since
			continue
		}
		if err != nil {
			return err
		}
		if d, ok := v.(details); ok && d.Diff != nil && len(d.Diff.Files) > 0 {
			b.said.Diffs++
		}
		b.answers[fmt.Sprint("api/task/", id)] = v
	}
	return nil
}

// conversations adds what the members have said since the run began: all of it, for there is no server to ask for more.
func (b *sharing) conversations(ctx context.Context) error {
	for _, name := range b.members {
		c := conversation{Said: []said{}}
		for s, err := range b.team.Members().Conversation(ctx, name, 0) {
			if errors.Is(err, muster.ErrCorrupt) {
				continue
			}
			if err != nil {
				return err
			}
			c.Said, c.Next = append(c.Said, newSaid(s)), s.Pos
		}
		// A member may have been there in earlier runs.
		first := slices.IndexFunc(c.Said, func(x said) bool { return x.At >= b.run.StartedAt })
		if first < 0 {
			first = len(c.Said)
		}
		c.skip(first)
		b.said.Entries += len(c.Said)
		b.answers["api/member/"+string(name)] = c
	}
	return nil
}

// inboxes adds the mail of the user and of the lead since the run began.
func (b *sharing) inboxes(ctx context.Context) error {
	v, err := b.mails(asPage(ctx))
	if err != nil {
		return err
	}
	all, ok := v.([]inbox)
	if !ok {
		return fmt.Errorf("inboxes are %T", v)
	}
	isEarlier := func(m muster.Message) bool { return m.At < b.run.StartedAt }
	for i, x := range all {
		all[i].Waiting, all[i].Read = slices.DeleteFunc(x.Waiting, isEarlier), slices.DeleteFunc(x.Read, isEarlier)
		b.said.Mails += len(all[i].Waiting) + len(all[i].Read)
	}
	b.answers["api/inbox"] = all
	return nil
}

// redact returns the data as JSON, without secrets and without the path of the home directory. No "<" stands in it.
func (b *sharing) redact(hide *redact.Secrets, home string) ([]byte, error) {
	data, err := json.Marshal(struct {
		Answers  map[string]any    `json:"answers"`
		Frames   []frame           `json:"frames"`
		Values   []json.RawMessage `json:"values"`
		Events   []face.Event      `json:"events"`
		Timeline int               `json:"timeline"` // events that are shown at once
	}{b.answers, b.frames, b.order, b.events, pastEvents})
	if err != nil {
		return nil, err
	}
	// Strings are looked at as they are meant, not as JSON writes them. Numbers stay as they were written.
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	// All keys are found before any is hidden: without the text around it, a key matches no rule.
	var keys []string
	seen := map[string]bool{}
	find := func(text string) string {
		if !seen[text] {
			seen[text] = true
			keys = append(keys, secrets.Keys("", []byte(text))...)
		}
		return text
	}
	eachString(v, find)
	// A key may have several lines, and differences have each for itself: those of the old text and of the new one.
	findInLines := func(lines []line) {
		for _, left := range []difflines.Kind{difflines.Removed, difflines.Added} {
			var side strings.Builder
			for _, l := range lines {
				if l.Kind != left {
					side.WriteString(l.Text + "\n")
				}
			}
			find(side.String())
		}
	}
	for _, x := range b.answers {
		switch x := x.(type) {
		case conversation:
			for _, s := range x.Said {
				if s.Edit != nil {
					findInLines(s.Edit.Lines)
				}
			}
		case details:
			if x.Diff != nil {
				findInLines(x.Diff.Lines)
			}
		}
	}
	hide = hide.With(keys...)
	homes := homePaths(home)
	v = eachString(v, func(text string) string {
		text = hide.String(text)
		b.said.Hidden += strings.Count(text, redact.Mark)
		text, n := shorten(text, homes)
		b.said.HomePaths += n
		return text
	})
	return json.Marshal(v) // it writes "<" as an escape
}

// eachString replaces all strings of a decoded JSON value, the names of fields too, some of which are data.
func eachString(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = eachString(v[i], f)
		}
	case map[string]any:
		for name, x := range maps.Clone(v) {
			delete(v, name)
			v[f(name)] = eachString(x, f)
		}
	}
	return v
}

// homePaths returns the paths of a home directory: as it is named, and without links. The longest comes first.
func homePaths(home string) (all []string) {
	for _, path := range []string{home, realPath(home)} {
		path = strings.TrimRight(filepath.Clean(path), string(filepath.Separator))
		if filepath.IsAbs(path) && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return real
}

// shorten writes "~" in place of the home directory, and returns how often. A longer name that begins like it is
// another directory. So is what ends like a home of one name: /srv/root is not below /root.
func shorten(text string, homes []string) (_ string, n int) {
	for _, home := range homes {
		isOneName := strings.Count(filepath.ToSlash(home), "/") == 1
		var out strings.Builder
		rest := text
		for {
			before, after, ok := strings.Cut(rest, home)
			out.WriteString(before)
			if !ok {
				break
			}
			// A dot continues a name, and also ends a sentence.
			next := strings.TrimPrefix(after, ".")
			if next != "" && isNameByte(next[0]) || isOneName && before != "" && isNameByte(before[len(before)-1]) {
				out.WriteString(home)
			} else {
				out.WriteByte('~')
				n++
			}
			rest = after
		}
		text = out.String()
	}
	return text, n
}

// isNameByte reports whether a byte continues the name of a file.
func isNameByte(c byte) bool {
	return c >= 0x80 || c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' ||
		'a' <= c && c <= 'z'
}

// compressed returns data by gzip in base64.
func compressed(data []byte) ([]byte, error) {
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	w, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = errors.Join(w.Close(), text.Close())
	}
	return out.Bytes(), err
}
