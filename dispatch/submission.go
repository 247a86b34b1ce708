package dispatch

import (
	"runtime"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A submission is one envelope on its way from a line into the ledger.
type submission struct {
	line    mailbox.Line
	task    envelope.Task
	odd     envelope.Findings // of reading it
	judged  task.Verdict      // what policy says
	verdict task.Verdict      // that, and what follows from who asks
	said    *envelope.Message // the message that asks; nil for a line of AINL's
	inbound *inboundMessage   // what else a message in a line does; nil for a line of AINL and for what the daemon asks for
	tie     envelope.Tie      // how it belongs to its parent
	above   *task.Task        // its parent, when that is certain; nil: it is found out
	parent  *task.Task        // the task whose run asks; nil: none
	now     time.Time
	refusal []byte // the answer, if the verdict refuses; nil: it does not, or there is nobody to answer
	fate    fate
	row     task.Task     // as the ledger has it, when accepted
	members []*submission // what is asked of each recipient, where there are several
	dir     string        // the run directory that was made for it to begin at once; "" for none
	attempt int           // the highest of a run directory that was there before its revision
	unknown []string      // run directories in which it may have begun, of which the ledger has no run
}

// A fate is what the ledger made of a submission.
type fate int

const (
	unnamed   fate = iota // refused, without an id that a result could go to
	accepted              // a new revision, of whatever state
	duplicate             // the same content as before
	conflict              // the id was executed and its agent refuses other content, or it is no AINL request's
	received              // a message that asks for no work
)

// judgeAll judges submissions, on all processors when there are many. Those of other
// dialects may ask the ledger, so what came before them is written down.
func (in *intake) judgeAll(submissions []*submission) {
	inParts(submissions, runtime.GOMAXPROCS(0), func(_ int, part []*submission) {
		for _, c := range part {
			c.now = time.Now()
			if c.inbound != nil {
				in.receiver.judgeMessage(c)
			} else {
				c.judged = in.acceptor.doubt(c.task, in.reader.judge(c.task, c.odd, c.now))
			}
			c.verdict = c.judged
			if !c.verdict.Admit && c.task.ID != "" {
				c.refuse()
			}
		}
	})
}

// refuse makes the answer to a submission that the verdict does not admit.
func (c *submission) refuse() { c.refusal = core.Refusal(c.task, c.verdict, false, c.now) }

// judge lets policy decide on what was decoded without a refusal.
func (rd *reader) judge(t envelope.Task, findings envelope.Findings, now time.Time) task.Verdict {
	if findings.Refused() {
		return task.Verdict{Findings: findings}
	}
	refs := rd.checkRefs(t)
	findings = append(findings, refs...)
	if refs.Refused() {
		return task.Verdict{Findings: findings, Terms: task.Terms{Levels: envelope.Levels{envelope.ControlRefs: envelope.LevelDaemon}}}
	}
	if calls := rd.checkCallback(t); calls.Refused() {
		return task.Verdict{Findings: append(findings, calls...)}
	}
	v := rd.agents.Judge(t, now)
	v.Findings = append(findings, v.Findings...)
	if rd.pauses.has(t.Agent) {
		v = core.Held(v, task.Paused)
	}
	return v
}

// shapeless reports whether the line itself is at fault, not what it asks for.
func shapeless(kind envelope.Kind) bool {
	switch kind {
	case envelope.InvalidJSON, envelope.InvalidEnvelope, envelope.UnsupportedVersion, envelope.SecurityViolation:
		return true
	}
	return false
}

// logTaken logs what became of a submission, once that is durable.
func (in *intake) logTaken(c *submission) {
	switch c.fate {
	case unnamed:
		// The findings quote the line, which may hold anything: they lie with it in rejected/.
		in.opts.Log.Warn().Str("file", c.line.File).Int64("offset", c.line.Offset).
			Str("reason", string(c.verdict.Findings.Kind())).Msg("line rejected")
	case duplicate:
		in.log(c.row).Debug().Str("task_id", string(c.task.ID)).Msg("duplicate ignored")
	case conflict:
		in.log(c.row).Warn().Str("task_id", string(c.task.ID)).Msg("other content for an executed id refused")
	case received:
		in.log(c.row).Debug().Str("act", string(c.inbound.message.Act)).Msg("message received")
	case accepted:
		if c.row.State != task.Done {
			in.info(c.row).Int("revision", c.row.Revision).Str("state", string(c.row.State)).Msg("task accepted")
		}
		if !slices.Contains(c.judged.Hold, task.Recovered) { // or that was said of all of them
			in.acceptor.warnUnknown(c.row, c.unknown)
		}
		for _, member := range c.members {
			in.logTaken(member)
		}
	}
}

// info is log(row).Info() for what each task has: without a logger of its own,
// which is 500 bytes.
func (s *shared) info(row task.Task) *zerolog.Event {
	return s.opts.Log.Info().Str("task_id", string(row.ID)).Str("agent", row.Agent)
}

// log returns a logger that names the task.
func (s *shared) log(row task.Task) *zerolog.Logger { return taskLogger(s.opts.Log, row) }

func taskLogger(log zerolog.Logger, row task.Task) *zerolog.Logger {
	if row.ID != "" {
		log = log.With().Str("task_id", string(row.ID)).Str("agent", row.Agent).Logger()
	}
	return &log
}
