package retry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muster/llm"
)

// The times of Fallback.
const (
	// OverloadPatience is how long a model that does not answer is asked, at least three times, before another one is.
	OverloadPatience = time.Minute
	// OutageTime is how long it is then left alone.
	OutageTime = 5 * time.Minute
)

// Candidate is a model that Fallback may ask, with retries around it.
type Candidate struct {
	Name string
	// Quick gives an outage up after OverloadPatience, and Patient waits it out.
	Quick, Patient llm.Model
}

// Outages knows which models do not answer now, by their names, for all who share it. Its zero value knows none. It is
// safe for concurrent use.
type Outages struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// mayAsk reports whether a model is to be asked. After an outage one request tries it, and the others wait for its
// result.
func (o *Outages) mayAsk(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	until, isOut := o.until[name]
	if isOut && time.Now().Before(until) {
		return false
	}
	if isOut {
		o.until[name] = time.Now().Add(OutageTime)
	}
	return true
}

// set notes whether a model is out, and reports whether that is news.
func (o *Outages) set(name string, isOut bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, was := o.until[name]
	if delete(o.until, name); isOut {
		if o.until == nil {
			o.until = map[string]time.Time{}
		}
		o.until[name] = time.Now().Add(OutageTime)
	}
	return was != isOut
}

// Fallback returns a model that asks the first candidate, and the next ones while those before are overloaded or cannot
// be reached: the Model of a reply says who answered. Every other error of the first is returned. A later one that
// fails in any way is passed over. When none is left, the first is waited for. tell gets a line when that changes who
// is asked.
func Fallback(known *Outages, tell func(line string), all ...Candidate) llm.Model {
	if len(all) == 1 {
		return all[0].Patient
	}
	return &fallback{known, tell, all}
}

// fallback implements llm.Model.
type fallback struct {
	outages *Outages
	tell    func(string)
	all     []Candidate
}

// Reply implements llm.Model.
func (f *fallback) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	shown := false
	show := func(d llm.Delta) {
		if shown = shown && !d.Again || d.Text+d.Think != ""; emit != nil {
			emit(d)
		}
	}
	for i, c := range f.all {
		if !f.outages.mayAsk(c.Name) {
			continue
		}
		reply, err := c.Quick.Reply(ctx, r, show)
		if err == nil {
			if f.outages.set(c.Name, false) {
				f.tell(c.Name + " answers again, and is asked again")
			}
			return reply, nil
		}
		isOut := llm.KindOf(err) == llm.Overloaded || llm.KindOf(err) == llm.Unreachable
		if ctx.Err() != nil || i == 0 && !isOut {
			return reply, err
		}
		if f.outages.set(c.Name, true) {
			next := f.all[(i+1)%len(f.all)].Name
			f.tell(fmt.Sprintf("%s does not answer, so %s is asked, and %[1]s again from %[3]s: %[4]v", c.Name, next,
				time.Now().Add(OutageTime).Format("15:04"), err))
		}
		if shown {
			show(llm.Delta{Again: true})
		}
	}
	return f.all[0].Patient.Reply(ctx, r, show)
}
