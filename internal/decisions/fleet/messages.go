package fleet

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Protocol is the version that this build speaks. The owner serves it and the one before.
const Protocol = 1

// A Report is what each message of a runner about itself says: who it is, and what it runs.
type Report struct {
	Protocol    int         `json:"protocol"`
	Runner      string      `json:"runner"`             // its name, as Name allows
	Incarnation string      `json:"incarnation"`        // made once with the state of the runner, and lost with it
	Session     string      `json:"session"`            // made at each start of the runner's program
	Journal     int64       `json:"journal"`            // how many changes the token journal had; it never decreases
	Number      int64       `json:"number"`             // of the report in its session, from 1; a smaller one is older
	Time        time.Time   `json:"time"`               // the wall clock of the runner
	Runs        []RunReport `json:"runs,omitzero"`      // every token that its journal has, except tombstones
	Voided      []Token     `json:"voided,omitzero"`    // tokens that will never begin, until the owner lists them in Settled
	DiskFull    string      `json:"disk_full,omitzero"` // why the runner takes no job, for people; "": it does
}

// A RunReport is the state of one token at its runner.
type RunReport struct {
	Token Token         `json:"token"`
	State RunState      `json:"state"`
	Cost  envelope.Cost `json:"cost,omitzero"`
	Since time.Duration `json:"since,omitzero"` // since it began
}

// A RunState is how far a token is at its runner. Each is durable in its journal before it is reported.
type RunState string

// The states.
const (
	Offered RunState = "offered" // taken, and not begun
	Began   RunState = "began"   // its process may exist
	Ended   RunState = "ended"   // its outcome waits for the owner
	Voided  RunState = "voided"  // a tombstone: it will never begin here
)

// A Hello is the first request of a session, and is repeated if the announcement changes or the owner says
// that it doesn't know the session.
type Hello struct {
	Report
	Announcement
}

// An Announcement is what a runner offers.
type Announcement struct {
	Version      string   `json:"version"` // of its program
	Slots        int      `json:"slots"`
	Capabilities []string `json:"capabilities,omitzero"`
	Sandbox      string   `json:"sandbox,omitzero"` // the kind of sandbox that works there; "": none
	Agents       []Agent  `json:"agents,omitzero"`

	// Commits has the newest commits of the repositories that the runner keeps, so that bundles are small.
	Commits map[string][]string `json:"commits,omitzero"`
}

// An Agent is one agent that a runner has.
type Agent struct {
	ID             string `json:"id"`
	Digest         string `json:"digest"` // the SHA-256 of its binding: command, program, variables, sandbox, directory
	Concurrency    int    `json:"concurrency,omitzero"`
	MaxSensitivity string `json:"max_sensitivity"` // "public", "internal", "confidential" or "restricted"
	Sandbox        string `json:"sandbox,omitzero"`
	Worktree       bool   `json:"worktree,omitzero"`   // it works in a clone that a bundle brings
	Idempotent     bool   `json:"idempotent,omitzero"` // its command may run again
}

// A Claim asks for jobs. The owner answers within ClaimWait, with or without a job. A claim is also a sign
// of life, so a runner without runs sends nothing else.
type Claim struct {
	Report
	ID   string         `json:"id"`   // unique; the runner takes jobs of the answer only while this claim is pending
	Free int            `json:"free"` // how many jobs it takes; 0: only a sign of life, answered at once
	By   map[string]int `json:"by"`   // how many of each agent; an agent without a number takes none
}

// A Beat is the sign of life of a runner with runs, each BeatEvery.
type Beat struct{ Report }

// A Reply answers a hello, a claim or a beat.
type Reply struct {
	Protocol int    `json:"protocol"`
	Epoch    int64  `json:"epoch"`  // of the owner; a runner obeys no smaller one than it has seen
	Number   int64  `json:"number"` // of the report that it answers
	Session  string `json:"session"`

	Lease   time.Duration `json:"lease,omitzero"`   // how long the tokens of Renew run on, from when that report was sent
	Renew   []Token       `json:"renew,omitzero"`   // tokens whose lease begins anew
	Cancel  []Token       `json:"cancel,omitzero"`  // tokens whose run is to end
	Void    []Token       `json:"void,omitzero"`    // tokens that must not begin; the runner answers in Voided, or lists them in Runs
	Settled []Token       `json:"settled,omitzero"` // tokens that the runner may forget, tombstones included
	Drain   string        `json:"drain,omitzero"`   // why the runner gets no jobs, for people; "": it gets some
	Refused string        `json:"refused,omitzero"` // why the owner doesn't serve this runner, for people; "": it does
	Hello   bool          `json:"hello,omitzero"`   // the owner doesn't know the session: send a Hello

	Claim string `json:"claim,omitzero"` // the ID of the claim that it answers
	Jobs  []Job  `json:"jobs,omitzero"`
}

// A Job is one attempt that a runner gets.
type Job struct {
	Token      Token          `json:"token"`
	Agent      string         `json:"agent"`
	Digest     string         `json:"digest"`              // of the agent's binding; with another one, the runner voids the token
	Idempotent bool           `json:"idempotent,omitzero"` // the runner ends it when its lease ends
	Deadline   time.Time      `json:"deadline,omitzero"`   // zero: none
	Remaining  time.Duration  `json:"remaining,omitzero"`  // until the deadline, when the owner sent the job; the earlier counts
	Work       jsontext.Value `json:"work,omitzero"`       // a Work; nil: it is in Object
	Object     *Object        `json:"object,omitzero"`     // the bytes of the Work, if they are more than MaxInline
}

// A Work is what a runner needs to run a job: task.Job without its functions and paths.
type Work struct {
	Request      []byte             `json:"request"` // the exact bytes of the envelope
	Task         envelope.Task      `json:"task"`    // the same, decoded
	Revision     int                `json:"revision"`
	Attempt      int                `json:"attempt"`
	RunID        string             `json:"run_id"`
	Digest       string             `json:"digest,omitzero"` // of the approved content
	Plan         jsontext.Value     `json:"plan,omitzero"`   // that content
	Allowance    envelope.Budget    `json:"allowance,omitzero"`
	Conversation []envelope.Message `json:"conversation,omitzero"`
	Terms        task.Terms         `json:"terms"`
	Worktree     *Worktree          `json:"worktree,omitzero"` // nil: the runner's configuration names the directory
	Inputs       []Object           `json:"inputs,omitzero"`   // artifacts that the request refers to
	Asks         bool               `json:"asks,omitzero"`     // the owner decides about calls of tools
	Meters       bool               `json:"meters,omitzero"`   // the owner wants the cost during the run
}

// A Worktree is the commit that a run starts from.
type Worktree struct {
	Repository string  `json:"repository"` // a name for the cache of the runner, no path
	Commit     string  `json:"commit"`
	Bundle     *Object `json:"bundle,omitzero"` // a bundle that has it; nil: the runner has the commit
	Patch      *Object `json:"patch,omitzero"`  // earlier work that the run goes on with; nil: none

	Detail jsontext.Value `json:"detail,omitzero"` // a worktree.Bundle
}

// An Object names bytes in a bucket of the runner. The reader checks size and digest.
type Object struct {
	Kind   ObjectKind `json:"kind"`
	Key    string     `json:"key"` // in the bucket, as Key allows
	Name   string     `json:"name,omitzero"`
	Size   int64      `json:"size"`
	SHA256 string     `json:"sha256"`
}

// An ObjectKind says what an Object is.
type ObjectKind string

// The kinds. Name is set for artifacts and inputs only: a path below the run directory, as LocalName allows.
const (
	ObjectWork     ObjectKind = "work"
	ObjectBundle   ObjectKind = "bundle"
	ObjectInput    ObjectKind = "input"
	ObjectPatch    ObjectKind = "patch"
	ObjectLog      ObjectKind = "log"
	ObjectEvidence ObjectKind = "evidence"
	ObjectArtifact ObjectKind = "artifact"
	ObjectOutcome  ObjectKind = "outcome"
)

// A Done is the outcome of a token. It is sent again until the owner answers, which it does after its commit.
type Done struct {
	Report
	Token   Token          `json:"token"`
	Outcome jsontext.Value `json:"outcome,omitzero"` // an Outcome; nil: it is in Object
	Object  *Object        `json:"object,omitzero"`
	Objects []Object       `json:"objects,omitzero"` // patch, log, artifacts
}

// An Outcome is a task.Outcome on its way.
type Outcome struct {
	Result       envelope.Result    `json:"result"`
	Exit         task.Exit          `json:"exit"`
	Retry        bool               `json:"retry,omitzero"`
	Messages     []envelope.Message `json:"messages,omitzero"`
	Hold         task.Reason        `json:"hold,omitzero"`
	HoldUntil    time.Time          `json:"hold_until,omitzero"`
	HoldShort    bool               `json:"hold_short,omitzero"`
	Unanswered   envelope.Result    `json:"unanswered,omitzero"`
	Patch        string             `json:"patch,omitzero"`
	Published    []task.Artifact    `json:"published,omitzero"`
	RefusedHosts []task.RefusedHost `json:"refused_hosts,omitzero"`
	Left         []Left             `json:"left,omitzero"` // what doesn't travel, at most MaxLeft
	Void         string             `json:"void,omitzero"`
	Unread       string             `json:"unread,omitzero"`
}

// A Left is something of a run that stays at its runner, because it is too large to travel.
type Left struct {
	What string `json:"what"` // for people
	Path string `json:"path"` // where it is at the runner
}

// A DoneReply says what became of an outcome.
type DoneReply struct {
	Epoch   int64  `json:"epoch"`
	Token   Token  `json:"token"`
	Settled bool   `json:"settled,omitzero"` // it is in the ledger: the runner may forget the token
	Fenced  string `json:"fenced,omitzero"`  // why it came too late, for people; it is kept for review, and the runner may forget the token
	Refused string `json:"refused,omitzero"` // why it wasn't accepted, for people; the runner keeps it
	Later   bool   `json:"later,omitzero"`   // the owner is busy: send it again
	Missing bool   `json:"missing,omitzero"` // its objects are not at the hub: put them again, and send it again
}

// A Note is what a run says or asks while it works.
type Note struct {
	Runner      string            `json:"runner"`
	Incarnation string            `json:"incarnation"`
	Token       Token             `json:"token"`
	Number      int64             `json:"number"` // in its run, from 1; a repeated one keeps its number
	Report      *envelope.Message `json:"report,omitzero"`
	Cost        *envelope.Cost    `json:"cost,omitzero"` // the total until now
	Used        *UsedNote         `json:"used,omitzero"`
	Ask         *AskNote          `json:"ask,omitzero"`
}

// A UsedNote is one use of a tool, for the history of the task.
type UsedNote struct {
	Kind task.Kind    `json:"kind"`
	Use  task.ToolUse `json:"use"`
}

// An AskNote asks for the decision about a call. It is sent again until there is one.
type AskNote struct {
	Call task.Call `json:"call"`
	Made bool      `json:"made,omitzero"`
}

// A NoteReply answers a Note.
type NoteReply struct {
	Token    Token              `json:"token"`
	Number   int64              `json:"number"`
	Decision *task.CallDecision `json:"decision,omitzero"` // nil: none yet
	Stop     string             `json:"stop,omitzero"`     // why the run is to end, such as a spent budget; "": it goes on
	Refused  string             `json:"refused,omitzero"`  // why the note wasn't accepted
}

// An Order is a hint of the owner that makes a runner act before its next report. The answer to that report
// repeats it, so a lost one only delays.
type Order struct {
	Epoch  int64         `json:"epoch"`
	Wake   bool          `json:"wake,omitzero"`   // send a beat now
	Cancel Token         `json:"cancel,omitzero"` // end this run
	Follow Token         `json:"follow,omitzero"` // send its output lines as they come
	For    time.Duration `json:"for,omitzero"`    // how long to do so
}

// A LogLine is a part of the output of a run, while it works. The complete log is an object of the Done.
type LogLine struct {
	Offset int64  `json:"offset"` // in bytes
	Text   []byte `json:"text"`
}
