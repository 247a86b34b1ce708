package external

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/running/remote"
)

// SaidFile is the file of a run directory with what others than the agent said about its task: a list of texts.
const SaidFile = "said.json"

// cancelTimeout is how long a host waits for the end of a cancelled task.
var cancelTimeout = 30 * time.Second

// EndTimeout is how long a host with an agent of A2A may take to end.
const EndTimeout = 35 * time.Second

// A dialogue is a host that speaks with an agent of A2A.
type dialogue struct {
	*host
	agent *remote.Agent
	said  []string
}

// converse has an agent of A2A do the task, or asks for what it does since an earlier host sent it.
func (h *host) converse(ctx context.Context) Result {
	d := &dialogue{host: h}
	if r := d.connect(ctx); r.Kind != "" {
		return r
	}
	r := d.doNext(ctx)
	if ctx.Err() != nil && r.open && h.record.Task != "" {
		return d.cancel(context.WithoutCancel(ctx), r)
	}
	return r
}

// connect reads the card of the agent, and what was said. Its results are open: nothing new was sent.
func (d *dialogue) connect(ctx context.Context) Result {
	card, err := readCard(ctx, d.host)
	if err != nil {
		r := d.unheard(ctx, err, false)
		if r.open = true; r.Status != 0 {
			r.Message = "the card of the agent can't be read: " + r.Message
		}
		return r
	}
	if d.Service.Card != "" && card.Digest != d.Service.Card {
		r := d.later(envelope.PolicyViolation, "the card of the agent is another one than in the approved plan; nothing was sent")
		r.Again = true // the plan is compared first then, and a person is asked
		return r
	}
	text, err := os.ReadFile(filepath.Join(d.Dir, SaidFile))
	if err == nil {
		err = json.Unmarshal(text, &d.said)
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		d.agent, err = card.Connect(ctx, d.messenger())
	}
	if err != nil {
		return d.later(envelope.InternalError, err.Error())
	}
	return Result{}
}

// doNext does what is next, by the record.
func (d *dialogue) doNext(ctx context.Context) Result {
	switch {
	case d.record.Task != "" && d.record.To != d.Service.URL:
		return d.lost(fmt.Sprintf("it is the task %s, and the agent has another address now, %s", short(d.record.Task), d.Service.URL))
	case d.record.Task == "" && d.record.Sent.IsZero(), d.record.Asked && len(d.said) > d.record.Received:
		d.record.Key, d.record.Said = d.RunID, len(d.said)
		return d.send(ctx)
	case d.record.Task == "":
		return d.send(ctx) // again, with the same id: the agent is idempotent
	}
	return d.follow(ctx)
}

// send sends the request, or a reply to the question of the agent, and waits for what comes of it.
func (d *dialogue) send(ctx context.Context) Result {
	asked, before := d.record.Asked, d.record.Sent
	d.record.To, d.record.Sent, d.record.Asked = d.Service.URL, time.Now(), false
	if err := d.record.write(d.Dir); err != nil {
		d.record.Sent, d.record.Asked = before, asked
		r := d.later(envelope.InternalError, "nothing was sent: "+err.Error())
		r.Again = true
		return r
	}
	point("recorded")
	sent := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { sent = true },
		WroteRequest: func(httptrace.WroteRequestInfo) { point("sent") },
	})
	message, err := d.message()
	if err != nil {
		return refuse(envelope.InternalError, "%v", err)
	}
	answer, err := d.agent.Send(traced, message)
	if err != nil {
		if !sent && asked {
			d.record.Asked = true // the reply is still to be sent
			err = errors.Join(err, d.record.write(d.Dir))
		}
		return d.unheard(ctx, err, sent)
	}
	if direct, ok := answer.(*a2a.Message); ok && d.record.Task == "" {
		return d.output(&a2a.Task{Status: a2a.TaskStatus{Message: direct}})
	}
	if r := d.identify(answer.TaskInfo(), true); r.Kind != "" {
		return r
	}
	if t, ok := answer.(*a2a.Task); ok {
		if r, done := d.settle(t); done {
			return r
		}
	}
	return d.follow(ctx)
}

// read reads events of the task until one after which nothing follows by itself, and returns the last one. What a
// stream doesn't say, the task does.
func (d *dialogue) read(events iter.Seq2[a2a.Event, error]) (r Result, last a2a.Event) {
	for e, err := range events {
		if err != nil {
			return r, last
		}
		if r := d.identify(e.TaskInfo(), false); r.Kind != "" {
			return r, e
		}
		last = e
		if s := remote.Status(e); s != nil {
			if remote.Waits(s.State) {
				return r, e
			}
			d.showStatus(*s)
		}
	}
	return r, last
}

// identify keeps the id of the task that the agent began, and refuses events of any other task. Events that answer
// a message show that the agent has it.
func (d *dialogue) identify(of a2a.TaskInfo, answers bool) Result {
	id := string(of.TaskID)
	switch {
	case id == "":
		return refuse(envelope.AgentProtocol, "the agent answered without the id of its task")
	case d.record.Task != "" && d.record.Task != id:
		return refuse(envelope.AgentProtocol, "the agent answered with the task %s, and was asked about %s", short(id), d.record.Task)
	case d.record.Task == id && (!answers || d.record.Received == d.record.Said):
		return Result{}
	}
	point("accepted")
	d.record.Task, d.record.Context, d.record.Received = id, of.ContextID, d.record.Said
	if err := d.record.write(d.Dir); err != nil {
		_, _ = fmt.Fprintln(d.Stderr, err) // this host knows the task all the same
	}
	point("located")
	return Result{}
}

// follow asks for the task until it has ended or waits, by a stream or else again and again.
func (d *dialogue) follow(ctx context.Context) Result {
	wait := firstPause
	for failed, hurried := 0, false; ; {
		point("polled")
		t, err := d.agent.Task(ctx, d.record.Task)
		switch {
		case errors.Is(err, a2a.ErrTaskNotFound):
			return refuse(envelope.RunLost, "the agent doesn't know its task %s any more", short(d.record.Task))
		case err != nil:
			r := d.unheard(ctx, err, true)
			if failed++; !r.Again || failed == maxFailed {
				return r
			}
		case d.lacksReply(t):
			if !d.Service.Idempotent {
				return d.lost("the agent still asks, and an earlier run ended when it sent the reply")
			}
			return d.send(ctx)
		default:
			if r, done := d.settle(t); done {
				return r
			}
			failed = 0
			r, last := d.read(d.agent.Follow(ctx, d.record.Task))
			if r.Kind != "" {
				return r
			}
			if s := remote.Status(last); s != nil && remote.Waits(s.State) && !hurried {
				hurried = true
				continue
			}
			hurried = false
		}
		if !pause(ctx, wait) {
			return d.later(envelope.Cancelled, "the run was ended before the agent had an answer")
		}
		wait = min(2*wait, longestPause)
	}
}
