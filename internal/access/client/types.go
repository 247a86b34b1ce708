package client

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Failure is the body of every answer that is not 200.
type Failure struct {
	Error Error `json:"error"`
}

// A Status describes the daemon that answers, and its load.
type Status struct {
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	Root      string         `json:"root"`       // the mailbox
	StateDir  string         `json:"state_dir"`  // its private half
	Started   time.Time      `json:"started_at"` // when the daemon opened its socket
	Open      map[string]int `json:"open"`       // tasks that are not done, by state; a state of none is left out, and a brief answer has none
	Paused    []string       `json:"paused"`     // agents that may start nothing; "" is every agent
	LastEvent int64          `json:"last_event"` // seq of the newest event
	Faults    []Fault        `json:"faults"`     // what the daemon cannot do now, oldest first
}

// A Fault is something that the daemon cannot do now and tries again.
type Fault struct {
	What   string    `json:"what"`           // as its log has it: dead letters cannot be appended
	File   string    `json:"file,omitempty"` // the task file that is not read, relative to the root
	Reason string    `json:"reason"`
	Hint   string    `json:"hint"` // what a person can do about it
	Since  time.Time `json:"since"`
}

// A Task is one revision of one task.
type Task struct {
	Seq            int64           `json:"seq"` // the order in which revisions were accepted
	ID             envelope.ID     `json:"task_id"`
	Revision       int             `json:"revision"` // 1 for the first content that had the id
	State          task.State      `json:"state"`    // received, held, queued, running, waiting, review or done
	Held           []task.Reason   `json:"held,omitempty"`
	Until          time.Time       `json:"until,omitzero"` // when the hold is looked at again by itself; of a task that waits, when its lease ends
	Attempt        int             `json:"attempt"`        // the number of the run it has or had; 0 before the first
	Agent          string          `json:"agent"`
	Requester      string          `json:"requester"`
	Type           string          `json:"task_type"`
	Deadline       time.Time       `json:"deadline,omitzero"`
	Received       time.Time       `json:"received_at"`
	Finished       time.Time       `json:"finished_at,omitzero"`
	Status         envelope.Status `json:"status,omitempty"`         // how it ended
	Kind           envelope.Kind   `json:"error_kind,omitempty"`     // what went wrong
	ResultFinal    bool            `json:"result_final"`             // a result file that is there answers this revision
	CallbackFailed bool            `json:"callback_failed,omitzero"` // the result could not be delivered to its callback
	Depth          int             `json:"depth,omitzero"`           // how many tasks are above it whose runs asked for it
	Priority       int             `json:"priority,omitzero"`        // of the tasks that wait, the highest starts first
	Dialect        string          `json:"dialect,omitempty"`        // in which it was asked for, clowl or cap; absent: ainl
	File           string          `json:"file"`                     // the task file of its line, relative to the root
	Offset         int64           `json:"offset"`                   // where in it the line begins
	RunID          string          `json:"run_id,omitempty"`         // the run of its tree of tasks; absent if it is the task's id; only in lists and details

	Description string            `json:"description,omitempty"` // of the request; only in lists with describe=1, word or label
	Labels      map[string]string `json:"labels,omitempty"`      // likewise
	ShortID     envelope.ID       `json:"short_id,omitempty"`    // the first characters of a random id, which name it now; in lists with describe=1, and in details
}

// A Page is a list of tasks.
type Page struct {
	Tasks []Task `json:"tasks"`
	More  bool   `json:"more,omitzero"` // ask again with after, the seq of the last one
}

// A Count is how many tasks there are.
type Count struct {
	Tasks int `json:"tasks"`
}

// TaskDetails are all that is known of one task.
type TaskDetails struct {
	Task         Task           `json:"task"` // the latest revision
	Why          string         `json:"why,omitempty"`
	Earlier      []Task         `json:"earlier_revisions,omitempty"`
	Request      jsontext.Value `json:"request,omitempty"`   // as it came; absent when it is too old to be kept
	Approvals    []Approval     `json:"approvals,omitempty"` // what people were asked about it
	Parent       envelope.ID    `json:"parent,omitempty"`    // the task whose run asked for it
	Children     []envelope.ID  `json:"children,omitempty"`  // the tasks that its own runs asked for
	Runs         []Run          `json:"runs,omitempty"`
	Conversation *Conversation  `json:"conversation,omitempty"` // absent if no messages are sent about it
	Messages     []Message      `json:"messages,omitempty"`     // the messages about it; the latest thousand
	Events       []Event        `json:"events"`                 // the latest thousand, of all revisions
	Result       jsontext.Value `json:"result,omitempty"`
	Unshown      jsontext.Value `json:"answer_not_shown,omitempty"` // it waits for a person, or one kept it back

	Labels map[string]string `json:"labels,omitempty"` // of the request
}

// An AskedTask is a task with its description, and what people were asked about it.
type AskedTask struct {
	Task      Task       `json:"task"` // the latest revision
	Approvals []Approval `json:"approvals,omitempty"`
}

// AskedTasks is the answer to the question what people were asked about some tasks.
type AskedTasks struct {
	Tasks []AskedTask `json:"tasks"`
}

// A Run is one attempt to have an agent do a task.
type Run struct {
	Attempt  int        `json:"attempt"`
	PID      int        `json:"pid,omitzero"`
	Started  time.Time  `json:"started_at,omitzero"`
	Finished time.Time  `json:"finished_at,omitzero"`
	ExitCode int        `json:"exit_code"`
	Signal   string     `json:"signal,omitempty"` // what ended it
	Cause    task.Cause `json:"cause,omitempty"`  // why we ended it
	Tokens   *int64     `json:"tokens,omitzero"`  // spent; absent if unknown
	USDCents *int64     `json:"usd_cents,omitzero"`
	Dir      string     `json:"dir"` // its run directory; agents that are workers have none

	Worktree     *Worktree     `json:"worktree,omitzero"`       // absent if it did not work in a clone of a repository
	RefusedHosts []RefusedHost `json:"refused_hosts,omitempty"` // of a run in a sandbox; commands read them from its directory
}

// A RefusedHost is a host that the network list of a sandbox doesn't have.
type RefusedHost struct {
	Host string `json:"host"`
	Why  string `json:"why"`
	For  string `json:"for,omitempty"` // what the agent's program uses it for without need; absent: it may need it
}

// An Event is one thing that happened.
type Event struct {
	Seq      int64          `json:"seq"` // says which came first, and is the id in a stream
	Time     time.Time      `json:"time"`
	Task     envelope.ID    `json:"task_id,omitempty"` // absent when it is about no task
	Revision int            `json:"revision"`
	Kind     task.Kind      `json:"kind"`           // as task.accepted
	Data     jsontext.Value `json:"data,omitempty"` // a JSON object
}

// A Balance is where a budget of a day stands.
type Balance struct {
	Owner    string `json:"account"` // requester:ID or agent:ID
	Day      string `json:"day"`     // as 2026-03-09, in UTC
	Tokens   Amount `json:"tokens"`
	USDCents Amount `json:"usd_cents"`
	Unknown  int    `json:"unknown_runs"` // runs of unknown cost, counted with their reservations
}

// An Amount is how much of a budget there is.
type Amount struct {
	Limit    *int64 `json:"limit,omitzero"` // as the latest run under it found it; absent: none
	Spent    int64  `json:"spent"`
	Reserved int64  `json:"reserved"`      // for runs that are not over
	Left     *int64 `json:"left,omitzero"` // of the limit
}

// Balances are the budgets of a day of which something was reserved or spent.
type Balances struct {
	Balances []Balance `json:"accounts"` // in the order of their owners
}

// Names are task ids.
type Names struct {
	IDs []envelope.ID `json:"ids"`
}

// A Cursor is how far one task file was read.
type Cursor struct {
	Path   string `json:"path"` // relative to the root
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
}

// Cursors are how far all task files were read.
type Cursors struct {
	Files []Cursor `json:"files"`
}

// ControlOptions are the body of a request to change where a task is.
type ControlOptions struct {
	Reason  string `json:"reason,omitempty"`  // for the record
	Timeout string `json:"timeout,omitempty"` // how long cancel and drain may take, as 30s; absent: as long as they do
}

// A Tree is a task that was cancelled with the tasks below it: the tasks that its runs asked
// for, the tasks below these, and so on.
type Tree struct {
	Task      Task   `json:"task"`
	Cancelled []Task `json:"cancelled"` // the tasks below it that were open; a task before those below it
}

// A Decision is the body of an approval or a denial.
type Decision struct {
	As   string `json:"as,omitempty"`   // which of the caller's approver names
	Note string `json:"note,omitempty"` // for the record; of a denial, the reason

	Proof    *Signature `json:"proof,omitempty"`        // of the decision's statement; absent: not signed
	Terminal bool       `json:"terminal,omitempty"`     // the daemon asks at the caller's terminal
	Number   string     `json:"number,omitempty"`       // the two digits to type there, shown elsewhere; absent: the terminal shows a number
	Digest   string     `json:"digest,omitempty"`       // of the question that the person saw; absent: whatever is asked
	Patch    string     `json:"patch_sha256,omitempty"` // of an answer: of the patch that the person saw with it; another one is refused; absent: none was shown
	Again    bool       `json:"again,omitempty"`        // of a denial: the caller sends the request once more with the note, as the terminal then says
	Unseen   bool       `json:"unseen,omitempty"`       // approves whatever is asked now; without it an approval needs a digest, a proof or terminal
}

// PageProtocol is the Protocol of a PageRequest. The daemon refuses the pages of earlier ones, and
// so their sessions: events of their time could have their cookies.
const PageProtocol = 1

// A PageRequest is the body of a report about a request to the page of mailboxd web.
type PageRequest struct {
	PID     int    `json:"pid,omitzero"`      // the process that owns the connection; absent: none was found
	Request string `json:"request"`           // as GET /tasks
	Refused string `json:"refused,omitempty"` // why the page refuses it; absent: the daemon judges the process
	Quiet   bool   `json:"quiet,omitempty"`   // a refusal is not recorded: there were many in this minute

	Protocol int `json:"protocol"` // 1
}

// A PageVerdict is the judgement of a request to the page, or to the gateway.
type PageVerdict struct {
	Refused string `json:"refused,omitempty"` // why; absent: the process may ask
}

// A GatewayRequest is the body of a report about a request to mailboxd gateway.
type GatewayRequest struct {
	PID     int    `json:"pid,omitzero"`      // the process of this machine that owns the connection; absent: none was found
	From    string `json:"from,omitempty"`    // the address of a client on another machine
	Sender  string `json:"sender,omitempty"`  // whose token it has; absent: nobody's yet
	Request string `json:"request"`           // as POST /message:send
	Refused string `json:"refused,omitempty"` // why the gateway refuses it; absent: the daemon judges the process
	Quiet   bool   `json:"quiet,omitempty"`   // a refusal is not recorded: there were many in this minute
}

// A Signature proves a decision.
type Signature struct {
	Expires   time.Time `json:"expires_at"`     // as the statement has it
	Kind      string    `json:"kind,omitempty"` // ssh or passkey; absent: ssh
	Signature string    `json:"signature"`      // armoured, as ssh-keygen -Y sign writes it, or the JSON of a WebAuthn assertion
}

// A Sending is what a person sends or changes on the page of mailboxd web, with a signature of its statement.
type Sending struct {
	Digest string     `json:"digest"`          // SHA-256 of what the page showed of it
	Asked  time.Time  `json:"asked_at"`        // of the statement
	Proof  *Signature `json:"proof,omitempty"` // of the statement; needed
}

// A Statement is what an approver signs to decide about a task, or to send something; it names no task then. Package
// proof has its text.
type Statement struct {
	Mailbox  string            `json:"mailbox"`
	Task     envelope.ID       `json:"task_id"`
	Revision int               `json:"revision"`
	Stage    envelope.Approval `json:"stage"`
	Decision string            `json:"decision"` // approved, denied, applied, discarded or sent
	Digest   string            `json:"digest"`
	Asked    time.Time         `json:"asked_at"`
	Expires  time.Time         `json:"expires_at"`
	Approver string            `json:"approver"`           // the name under which the caller decides
	Needs    string            `json:"needs"`              // the least proof: none, terminal, ssh or person
	Keys     []string          `json:"keys"`               // the approver's public keys, as authorized_keys has them
	Passkeys []string          `json:"passkeys,omitempty"` // the approver's passkeys, as mailboxd web prints them
}

// AgentOptions are the body of a request to pause or resume an agent.
type AgentOptions struct {
	Agent   string `json:"agent"` // "" is every agent
	Reason  string `json:"reason,omitempty"`
	Timeout string `json:"timeout,omitempty"`
}

// Pauses are the agents that may start nothing.
type Pauses struct {
	Paused []string `json:"paused"` // "" is every agent
}

// A ConfigDiff is how the configuration of the daemon differs from the file.
type ConfigDiff struct {
	File     string         `json:"file"`               // that the daemon reads; "" for none
	ReadAt   time.Time      `json:"read_at"`            // when the daemon read the configuration that is in force
	Changes  []ConfigChange `json:"changes"`            // from the daemon's to the file's
	Mistakes []string       `json:"mistakes,omitempty"` // why the file cannot be used; the configuration in force stays
}

// A ConfigChange is one difference between two configurations.
type ConfigChange struct {
	Agent   string         `json:"agent_id,omitempty"` // absent for a key outside of agents
	Key     string         `json:"key,omitempty"`      // absent for a whole agent
	Change  string         `json:"change"`             // added, removed or changed
	Was     jsontext.Value `json:"was,omitempty"`      // absent for a secret
	Is      jsontext.Value `json:"is,omitempty"`       // absent for a secret
	Restart bool           `json:"restart,omitzero"`   // the daemon has to be restarted for it
}

// A Claim is the body of a request to claim a task.
type Claim struct {
	Agent string `json:"agent_id"`     // for which agent
	As    string `json:"as,omitempty"` // the name of the program that claims: once its process has ended, a program of that name gets the task again
}

// A Claimed is a claimed task. It is empty if no task waits for the agent.
type Claimed struct {
	Task    *Task           `json:"task,omitzero"`
	Request jsontext.Value  `json:"request,omitempty"` // the task's line
	Lease   string          `json:"lease,omitempty"`   // to show with the answer
	Until   time.Time       `json:"until,omitzero"`    // when the lease ends, unless it is renewed
	Tools   []string        `json:"tools,omitzero"`    // allowed tools; absent: not restricted
	Budget  envelope.Budget `json:"budget,omitzero"`   // that may be spent
	Due     time.Time       `json:"due,omitzero"`      // when it has to be answered
}

// A Renewal is the body of a request to renew a lease.
type Renewal struct {
	Agent string `json:"agent_id"`
	Lease string `json:"lease"`
}

// A Renewed says until when a lease lasts now.
type Renewed struct {
	Until time.Time `json:"until"`
}

// A Submission is the body of an answer to a task that waits.
type Submission struct {
	Agent  string         `json:"agent_id"`
	Lease  string         `json:"lease,omitempty"` // absent if it is not claimed
	Result jsontext.Value `json:"result"`          // an AgentTaskResult, or its output
}

// An EventList is a list of events.
type EventList struct {
	Events []Event `json:"events"` // oldest first
}
