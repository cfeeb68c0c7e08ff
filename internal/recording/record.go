package recording

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/llm"
)

// Tape is what package team puts around the models of a run and between the steps of its members.
type Tape interface {
	// Begin is told the run when its records are written, before any member lives, the repository's
	// root, and the tasks that are on the board already.
	Begin(run muster.Run, root string, tasks []muster.Task) error
	// Model returns the model of a member or of one of its subagents.
	Model(member muster.Name, m llm.Model) llm.Model
	// ServerTools returns the tools of servers that a member has in place of those that run; isPlayed is false where
	// the run has its own.
	ServerTools(member muster.Name) (tools []llm.Tool, isPlayed bool)
	Turns() *Turns
}

// Recorder writes a recording. It is safe for concurrent use. What cannot be written does not stop the run: Close tells
// of it.
type Recorder struct {
	// Path is that of the file.
	Path string

	options json.RawMessage
	program string
	hide    func(json.RawMessage) json.RawMessage
	turns   *Turns

	mu       sync.Mutex
	tail     *durable.Tail // nil until the run begins
	sum      hash.Hash     // of what was written, with the user's key
	err      error         // the first one
	prefixes map[string]bool
	talks    map[string]*talk
	subs     map[muster.Name]int // how many conversations of subagents a member has had
}

// talk is what was recorded of one conversation.
type talk struct {
	of   string
	turn int
	sums [][sha256.Size]byte // of the messages of the last call
}

// Create prepares the file of a recording, which is made when the run begins. program is the version of muster, and
// options are the settings that requests depend on. hide hides secrets in a line. key is the user's own; without one
// the file is not signed.
func Create(
	path, program string, options json.RawMessage, hide func(json.RawMessage) json.RawMessage, key []byte,
) (*Recorder, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, muster.Errorf(muster.Invalid, "%s exists already", path).
			WithHint("name a new file: --record FILE")
	}
	r := &Recorder{Path: path, options: options, program: program, hide: hide, prefixes: map[string]bool{},
		talks: map[string]*talk{}, subs: map[muster.Name]int{}}
	if key != nil {
		r.sum = hmac.New(sha256.New, key)
	}
	r.turns = recordTurns(func(s Step) { r.write(Line{Step: &s}, false) })
	return r, nil
}

// write writes a line, and syncs it where that is asked for.
func (r *Recorder) write(l Line, sync bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writeLocked(l, sync)
}

// writeLocked is write for a caller that holds the lock.
func (r *Recorder) writeLocked(l Line, sync bool) {
	if r.err != nil || r.tail == nil {
		return
	}
	var line []byte
	if line, r.err = muster.MarshalLine(l); r.err != nil {
		return
	}
	line = append(bytes.Clone(r.hide(line)), '\n')
	write := r.tail.Write
	if sync {
		write = r.tail.Append
	}
	if _, r.err = write(line); r.err == nil && r.sum != nil {
		_, _ = r.sum.Write(line) // a hash never fails
	}
}

// Begin makes the file and writes the header. A run that is refused leaves no file.
func (r *Recorder) Begin(run muster.Run, root string, tasks []muster.Task) (err error) {
	r.mu.Lock()
	r.tail, err = durable.New(durable.OS{}).OpenTail(r.Path)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	r.write(Line{Header: &Header{Version: version, Program: r.program, Root: root, Run: run, Tasks: tasks,
		Options: r.options}}, true)
	return r.err
}

// Turns returns what notes the steps of members.
func (r *Recorder) Turns() *Turns { return r.turns }

// Event records an event.
func (r *Recorder) Event(e muster.Event) { r.write(Line{Event: &e}, false) }

// Landing records a landing.
func (r *Recorder) Landing(l Landing) { r.write(Line{Landing: &l}, false) }

// Close writes how the run ended, nil for a run that did not, and the signature, and closes the file.
func (r *Recorder) Close(end *End) error {
	if end != nil {
		r.write(Line{End: end}, true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail == nil {
		return nil
	}
	if r.sum != nil && r.err == nil {
		line, _ := muster.MarshalLine(Line{Signature: hex.EncodeToString(r.sum.Sum(nil))}) // it always encodes
		_, r.err = r.tail.Append(append(line, '\n'))
	}
	if err := errors.Join(r.err, r.tail.Close()); err != nil {
		return fmt.Errorf("the recording is not whole: %w", err)
	}
	return nil
}

// Verify returns what tells a signature of the user with the key from any other.
func Verify(key []byte) func(text []byte, signature string) bool {
	return func(text []byte, signature string) bool {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(text) // a hash never fails
		return key != nil && hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature))
	}
}

// Model returns a model whose calls are recorded.
func (r *Recorder) Model(member muster.Name, m llm.Model) llm.Model {
	return recordingModel{r, member, m}
}

// ServerTools returns none: a run that is recorded has its own.
func (r *Recorder) ServerTools(muster.Name) (tools []llm.Tool, isPlayed bool) { return nil, false }

// recordingModel is a model of a member whose calls are recorded.
type recordingModel struct {
	recorder *Recorder
	member   muster.Name
	llm.Model
}

// Reply asks the model and records what came of it.
func (m recordingModel) Reply(ctx context.Context, q llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	started := time.Now()
	reply, err := m.Model.Reply(ctx, q, emit)
	c := &Call{Member: m.member, Purpose: q.Purpose, At: muster.UnixTime(time.Now()),
		Seconds: time.Since(started).Seconds()}
	switch {
	case err == nil:
		c.Reply = &reply
	case context.Cause(ctx) != nil:
		c.Error = &Failure{Kind: cancelled}
	default:
		c.Error = &Failure{Kind: llm.KindOf(err), Text: err.Error()}
	}
	m.recorder.call(c, q)
	return reply, err
}

// cancelled is the kind of a call that its caller has given up.
const cancelled = "cancelled"

// isSub reports whether a request is one of a subagent.
func isSub(q llm.Request) bool {
	return strings.HasSuffix(q.CacheKey, "/sub") || q.Purpose == "review" || q.Purpose == "arbiter"
}

// call records a call, with what its request has that is new.
func (r *Recorder) call(c *Call, q llm.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := prefixOf(q)
	if c.Prefix = p.ID; !r.prefixes[p.ID] {
		r.prefixes[p.ID] = true
		r.writeLocked(Line{Prefix: p}, false)
	}
	var sums [][sha256.Size]byte
	for _, m := range q.Messages {
		data, _ := muster.MarshalLine(m) // parts always encode
		sums = append(sums, sha256.Sum256(data))
	}
	key := string(c.Member)
	if isSub(q) && len(sums) > 0 {
		key += hex.EncodeToString(sums[0][:])
	}
	t := r.talks[key]
	if t == nil {
		t = &talk{}
		if isSub(q) {
			r.subs[c.Member]++
			t.of = fmt.Sprintf("subagent %d", r.subs[c.Member])
		}
		r.talks[key] = t
	}
	for c.Kept < min(len(sums), len(t.sums)) && sums[c.Kept] == t.sums[c.Kept] {
		c.Kept++
	}
	t.turn++
	t.sums = sums
	c.Of, c.Turn, c.Messages = t.of, t.turn, q.Messages[c.Kept:]
	r.writeLocked(Line{Call: c}, true)
}

// prefixOf returns what a request begins with. Its id is a hash of it.
func prefixOf(q llm.Request) *Prefix {
	p := &Prefix{System: q.System, Tools: q.Tools}
	data, _ := muster.MarshalLine(p) // it always encodes
	sum := sha256.Sum256(data)
	p.ID = hex.EncodeToString(sum[:8])
	return p
}
