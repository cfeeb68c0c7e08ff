package muster

// RequestKind is what is asked.
type RequestKind string

// The kinds of requests.
const (
	AskShutdown   RequestKind = "shutdown"
	AskPlan       RequestKind = "plan_approval"
	AskPermission RequestKind = "permission"
	AskInterrupt  RequestKind = "interrupt" // of the user: the lead is to end its turn and to listen
)

// RequestStatus is where a request stands. All but RequestPending are final.
type RequestStatus string

// The statuses of a request.
const (
	RequestPending   RequestStatus = "pending"
	RequestApproved  RequestStatus = "approved"
	RequestRejected  RequestStatus = "rejected"
	RequestExpired   RequestStatus = "expired"
	RequestCancelled RequestStatus = "cancelled"
)

// RequestScope is for how long a permission is given.
type RequestScope string

// The scopes of permissions.
const (
	ScopeOnce   RequestScope = ""
	ScopeRun    RequestScope = "run"    // for everybody, until the run ends
	ScopeAlways RequestScope = "always" // in this repository, until the user takes it back
)

// Request is a question that waits for somebody: .team/requests/ID.json.
type Request struct {
	ID         RequestID     `json:"request_id"`
	Kind       RequestKind   `json:"kind"`
	From       Name          `json:"from"`
	To         Name          `json:"to"` // who decides; the user may decide what is addressed to the lead
	Status     RequestStatus `json:"status"`
	Plan       string        `json:"plan,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Change     string        `json:"change,omitempty"` // the difference that a permission is about
	TaskID     TaskID        `json:"task_id,omitempty"`
	Fence      int           `json:"fence,omitempty"`     // an approval holds for one task, one fence,
	PlanHash   string        `json:"plan_hash,omitempty"` // one text
	Force      bool          `json:"force,omitempty"`
	CreatedAt  float64       `json:"created_at"`
	UpdatedAt  float64       `json:"updated_at"`
	Deadline   float64       `json:"deadline,omitempty"` // 0: none
	ResolvedBy Name          `json:"resolved_by,omitempty"`
	ResolvedAt float64       `json:"resolved_at,omitempty"`
	Response   string        `json:"response,omitempty"`
	// Asks are the rules that an approval of a permission may add for longer, and Scope is for how long it does.
	Asks  []string     `json:"asks,omitempty"`
	Scope RequestScope `json:"scope,omitempty"`
	// CallID is the call of a tool that waits for a permission, and TakenAt when its member went on with the answer.
	// Until then the call has not run.
	CallID  string  `json:"call_id,omitempty"`
	TakenAt float64 `json:"taken_at,omitempty"`
	Extra   Extra   `json:"-"`
}

// requestFields has no methods, so that package json fills and writes the fields by itself.
type requestFields Request

// MarshalJSON writes r with the fields it did not know.
func (r Request) MarshalJSON() ([]byte, error) { return marshalKeep(requestFields(r), r.Extra) }

// UnmarshalJSON reads a request and keeps what it does not know.
func (r *Request) UnmarshalJSON(data []byte) error {
	return unmarshalKeep(data, (*requestFields)(r), &r.Extra, requestFields{})
}
