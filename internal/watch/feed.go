package watch

import (
	"context"
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster/internal/clock"
	"muster/internal/face"
	"muster/internal/view"
	"muster/team"
)

const (
	// keptEvents is how many events can be looked back at, and firstEvents with how many of those before its start the
	// screen begins. All of them are in muster log.
	keptEvents  = 20_000
	firstEvents = 1000
	// eventsInterval is the shortest time between two messages about events. They do not wait for an overview, which
	// takes longer on a large board.
	eventsInterval = 100 * time.Millisecond
	// settleTime is how long the feed waits after an event for those that come with it. A claim, for one, is several
	// events and records, and a picture of the half of it would be replaced at once.
	settleTime = 40 * time.Millisecond
	// minInterval is the shortest time between two overviews. People do not read faster.
	minInterval = 250 * time.Millisecond
	// restFactor bounds what overviews cost: after one that took d, the next waits restFactor times d. So they take at
	// most an eighth of one core on a board of any size.
	restFactor = 8
	// pollInterval is how often the feed looks for what no event tells, such as a process that was killed.
	pollInterval = 3 * time.Second
)

type (
	// changedMsg is how the team stands after some events.
	changedMsg struct {
		overview view.Overview
		err      error
	}
	// eventsMsg are events in words, the newest last.
	eventsMsg []face.Event
	// tickMsg says how late it is, so that ages grow while nothing happens.
	tickMsg time.Time
)

// feed follows the journal of a team. Events are hints: what is shown is read from the records, so an event that was
// missed, or read twice, changes nothing for longer than until the next one.
//
// It never slows the team. Reading takes no lock that a writer waits for, and happens at most four times a second,
// however many events there are, and less often where a large board makes an overview slow. While nothing happens it
// reads only the records of the members.
type feed struct {
	team     *team.Team
	hasState func() bool
	now      func() time.Time
	// These hold a token while there are events that no overview, and no message, was sent for.
	changed, isNew chan struct{}

	mu     sync.Mutex
	events []face.Event // that were not sent yet; the older ones go where there are more than can be looked at
	err    error        // why following has ended
}

// run sends the model what happens, until ctx ends. Sending waits while the screen is busy, and then events gather in
// follow: the screen gets the newest state next, and never a queue of old ones.
func (f *feed) run(ctx context.Context, send func(tea.Msg)) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for !f.hasState() {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
	var followed sync.WaitGroup
	defer followed.Wait()
	followed.Go(func() { f.follow(ctx) })
	followed.Go(func() { f.sendEvents(ctx, send) })
	followed.Go(func() { sendWords(ctx, f.team, send) })
	var members []view.Member
	nudge(f.changed) // the first overview does not wait for an event
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			now, err := face.Members(ctx, f.team)
			if err != nil || reflect.DeepEqual(now, members) {
				send(tickMsg(f.now()))
				continue
			}
			members = now
		case <-f.changed:
			if clock.Sleep(ctx, settleTime) != nil {
				return
			}
		}
		began := time.Now()
		f.send(ctx, send)
		if clock.Sleep(ctx, max(minInterval, restFactor*time.Since(began))) != nil {
			return
		}
	}
}

// sendEvents sends the model the events as they come, until ctx ends.
func (f *feed) sendEvents(ctx context.Context, send func(tea.Msg)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.isNew:
		}
		// Taken under the lock that follow appends under: each event is in exactly one message.
		f.mu.Lock()
		events := f.events
		f.events = nil
		f.mu.Unlock()
		if send(eventsMsg(events)); clock.Sleep(ctx, eventsInterval) != nil {
			return
		}
	}
}

// send reads how the team stands and sends it.
func (f *feed) send(ctx context.Context, send func(tea.Msg)) {
	f.mu.Lock()
	msg := changedMsg{err: f.err}
	f.mu.Unlock()
	o, err := face.Overview(ctx, f.team, f.now())
	if msg.overview = o; err != nil {
		msg.err = err
	}
	if ctx.Err() == nil {
		send(msg)
	}
}

// follow collects the events, the last ones first. It never waits for the screen, so the journal is not held up.
func (f *feed) follow(ctx context.Context) {
	from, err := f.team.Journal().Tail(ctx, firstEvents)
	if err == nil {
		for e, failed := range face.Follow(ctx, f.team, from) {
			if err = failed; err != nil {
				break
			}
			f.mu.Lock()
			// Of a burst while the screen is busy the newest stay, as many as can be looked back at.
			if f.events = append(f.events, e); len(f.events) > 2*keptEvents {
				f.events = append(f.events[:0], f.events[keptEvents:]...)
			}
			f.mu.Unlock()
			nudge(f.isNew)
			nudge(f.changed)
		}
	}
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	nudge(f.changed)
}

// nudge says that there is something to send. It never waits: a token that is there already says the same.
func nudge(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}
