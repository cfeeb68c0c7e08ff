package team

import (
	"context"
	"sync"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/teammate"
)

// Conversation is the user's side of a conversation with the lead: Config.Conversation makes a run one. While it is
// open the run does not end by itself; where it would, the lead waits for what Say brings, and nobody is timed out. Its
// methods may be called from any goroutine.
type Conversation struct {
	rested chan struct{} // holds one token: the state below has changed

	mu      sync.Mutex
	closed  chan struct{}             // another one each time that the conversation is opened again
	leases  muster.Leases             // the team's, once it is open
	hasLeft bool                      // the user; whether the conversation is open is then a matter of the lease
	post    *mailbox.Mail             // the team's, once it is open
	stop    context.CancelCauseFunc   // of the lead's turn; nil: it has none
	words   string                    // the longest of what was said
	said    map[muster.MessageID]bool // by the user, and not heard yet
	resting bool
	done    bool
}

// NewConversation makes an open conversation, for one run.
func NewConversation() *Conversation {
	return &Conversation{closed: make(chan struct{}), rested: make(chan struct{}, 1), said: map[muster.MessageID]bool{}}
}

// Close says that the user says no more. The run then ends as one without a conversation does: when all has landed, or
// nothing can go on.
func (c *Conversation) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setOpen(false)
}

func (c *Conversation) setOpen(open bool) {
	isOpen := true
	select {
	case <-c.closed:
		isOpen = false
	default:
	}
	switch {
	case isOpen && !open:
		close(c.closed)
	case !isOpen && open:
		c.closed = make(chan struct{})
	}
}

// Leave says that the user has left, while the team goes on in this process. Until ctx ends the conversation is open
// whenever somebody is attached to the team from another process, and closed otherwise.
func (c *Conversation) Leave(ctx context.Context) {
	c.mu.Lock()
	c.hasLeft = true
	c.setOpen(false)
	c.mu.Unlock()
	go func() {
		for wait(ctx, hostCheckInterval) {
			c.look(ctx) // a lead that waits for the user learns in this way that nobody is there any more
		}
	}()
}

// look returns the channel that is closed while the conversation is, after a look at the lease where the user has left.
func (c *Conversation) look(ctx context.Context) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasLeft && c.leases != nil {
		// Where it cannot be read whether somebody is there, nothing changes until the next look.
		if held, err := c.leases.Held(ctx, teammate.TalkLease); err == nil {
			c.setOpen(held)
		}
	}
	return c.closed
}

// Interrupt stops the lead's turn, with the commands that it runs, and reports whether it had one. The team works on;
// the lead goes on when the user has said something.
func (c *Conversation) Interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		return false
	}
	c.stop(muster.CauseTurn)
	return true
}

// Resting reports whether the lead has heard all that was said, its turn is over and the prompt is the user's. done:
// nothing is open and nobody works either, so that Close would end the run at once.
func (c *Conversation) Resting() (resting, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resting = c.resting && len(c.said) == 0
	return resting, resting && c.done
}

// Changed receives when Resting may say something else; several changes may come as one.
func (c *Conversation) Changed() <-chan struct{} { return c.rested }

// Say sends the lead what the user says. It is durable on nil, and is heard between two of the lead's steps. Before
// team.Open it is an error: there is nobody to say it to.
func (c *Conversation) Say(ctx context.Context, text string) error {
	c.mu.Lock() // held until it is noted, so that the lead cannot have heard it before
	defer c.mu.Unlock()
	if c.post == nil {
		return muster.Errorf(muster.NotFound, "nobody is there to hear it: no team was opened with this conversation")
	}
	msg, err := c.post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead,
		Content: text})
	if err == nil {
		c.said[msg.ID] = true
		c.noteWords(text)
	}
	return err
}

// talk is a conversation as the lead sees it.
type talk struct{ *Conversation }

// Closed is closed when the user says no more.
func (t talk) Closed() <-chan struct{} { return t.look(context.Background()) }

// Turn returns the context of a turn of the lead, which Interrupt ends, and the function that ends the turn.
func (t talk) Turn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	t.set(stop, false, false)
	return ctx, func() {
		t.set(nil, false, false)
		stop(nil)
	}
}

// Rest says that the lead waits for the user. done: the run would end now.
func (t talk) Rest(done bool) { t.set(nil, true, done) }

// Heard says that the lead has read a mail. Its turn begins then, so the prompt is not the user's any more.
func (t talk) Heard(id muster.MessageID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.said, id)
	t.resting = false
}

// set notes how the lead stands, and tells those who wait for a change.
func (t talk) set(stop context.CancelCauseFunc, resting, done bool) {
	t.mu.Lock()
	same := t.resting == resting && t.done == done
	t.stop, t.resting, t.done = stop, resting, done
	t.mu.Unlock()
	if !same {
		wake(t.rested)
	}
}

// listen makes the conversation one with this team; nil where there is none.
func (c *Conversation) listen(post *mailbox.Mail, leases muster.Leases) teammate.Talk {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.post, c.leases = post, leases
	return talk{c}
}

// hostCheckInterval is how often an Attachment checks whether the lead's process is alive.
const hostCheckInterval = time.Second

func (c *Conversation) noteWords(text string) {
	if len(text) > len(c.words) {
		c.words = text
	}
}

// longestWords returns the longest of what the user has said here; "" without a conversation.
func (c *Conversation) longestWords() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.words
}
