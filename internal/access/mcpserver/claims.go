package mcpserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// maxClaim is how long a claim is renewed: a model that has forgotten its
// task does not keep it from others for ever, however long its editor is open.
const maxClaim = time.Hour

// A claim is a task that a model here has to answer. Its lease is ours to know:
// a model would lose it.
type claim struct {
	id    envelope.ID
	agent string
	lease string
	until time.Time
	over  chan struct{} // closed when it is answered
}

// claims are what the models of an editor have claimed. They may be used from
// several goroutines at once.
type claims struct {
	fresh chan *claim // to be renewed

	mu   sync.Mutex // guards held
	held map[envelope.ID]*claim
}

func newClaims() *claims {
	return &claims{fresh: make(chan *claim), held: map[envelope.ID]*claim{}}
}

// add remembers a claim, and has it renewed.
func (c *claims) add(ctx context.Context, got *claim) {
	c.mu.Lock()
	c.held[got.id] = got
	c.mu.Unlock()
	select {
	case c.fresh <- got:
	case <-ctx.Done(): // it lasts as long as it does
	}
}

// lease returns what to show with the answer to a task; "" when it was not
// claimed here.
func (c *claims) lease(id envelope.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.held[id]; got != nil {
		return got.lease
	}
	return ""
}

// drop forgets a claim that was answered.
func (c *claims) drop(id envelope.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.held[id]; got != nil {
		close(got.over)
		delete(c.held, id)
	}
}

// keep renews each claim until ctx ends: when an editor is closed, or killed,
// what its models have claimed waits for others once the lease is over.
func (c *claims) keep(ctx context.Context, renew func(context.Context, *claim) (time.Time, error)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case got := <-c.fresh:
			all.Go(func() { got.keep(ctx, renew) })
		}
	}
}

// keep renews a claim halfway through its lease, until it is answered, lost or
// too old. While the daemon cannot be asked nobody else can claim the task.
func (c *claim) keep(ctx context.Context, renew func(context.Context, *claim) (time.Time, error)) {
	until := c.until
	for began := time.Now(); time.Since(began) < maxClaim; {
		select {
		case <-ctx.Done():
			return
		case <-c.over:
			return
		case <-time.After(time.Until(until) / 2):
		}
		renewed, err := renew(ctx, c)
		switch {
		case err == nil:
			until = renewed
		case isTemporary(err):
			until = time.Now().Add(2 * retry)
		default:
			return
		}
	}
}

// isTemporary reports whether an error says nothing of a claim, but only that the
// daemon cannot be asked just now.
func isTemporary(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, client.ErrDown) ||
		ok && slices.Contains([]string{client.Stopping, client.Busy, client.Unfinished, client.Internal}, said.Kind)
}

// claimArgs are the arguments of claim_task.
type claimArgs struct {
	AgentID string `json:"agent_id"`
}

// A claimedTask is the answer of claim_task.
type claimedTask struct {
	Found   bool            `json:"found"`
	TaskID  envelope.ID     `json:"task_id,omitempty"`
	Request jsontext.Value  `json:"request,omitempty"`
	Tools   []string        `json:"allowed_tools,omitzero"` // absent: nobody said
	Budget  envelope.Budget `json:"budget,omitzero"`
	Due     time.Time       `json:"due,omitzero"`
}

func (s *server) claimTask(ctx context.Context, _ call, in claimArgs) (claimedTask, error) {
	if in.AgentID == "" {
		return claimedTask{}, errors.New("agent_id: required")
	}
	var got client.Claimed
	err := s.steer(ctx, func(ctx context.Context, daemon *client.Client) (err error) {
		got, err = daemon.Claim(ctx, client.Claim{Agent: in.AgentID, As: s.opts.Requester})
		return err
	})
	if err != nil || got.Task == nil {
		return claimedTask{}, err
	}
	s.claims.add(ctx, &claim{id: got.Task.ID, agent: in.AgentID, lease: got.Lease, until: got.Until, over: make(chan struct{})})
	return claimedTask{true, got.Task.ID, got.Request, got.Tools, got.Budget, got.Due}, nil
}

// renew has a claim last longer.
func (s *server) renew(ctx context.Context, c *claim) (until time.Time, err error) {
	err = s.steer(ctx, func(ctx context.Context, daemon *client.Client) error {
		renewed, err := daemon.Renew(ctx, c.id, client.Renewal{Agent: c.agent, Lease: c.lease})
		until = renewed.Until
		return err
	})
	if err != nil && ctx.Err() == nil && !isTemporary(err) {
		s.opts.Log.Warn().Err(err).Str("task_id", string(c.id)).Str("agent", c.agent).Msg("claim not renewed")
	}
	return until, err
}

// submitArgs are the arguments of submit_result.
type submitArgs struct {
	TaskID     string         `json:"task_id"`
	AgentID    string         `json:"agent_id"`
	Status     string         `json:"status"`
	Summary    string         `json:"summary"`
	Actions    jsontext.Value `json:"actions"`
	Confidence jsontext.Value `json:"confidence"`
}

// submitResult answers a task. What is wrong with the answer the daemon says,
// and it can be corrected; the task stays claimed.
func (s *server) submitResult(ctx context.Context, _ call, in submitArgs) (outcome, error) {
	id, err := taskID(in.TaskID)
	if err != nil {
		return outcome{}, err
	}
	result, err := in.result()
	if err != nil {
		return outcome{}, err
	}
	var task client.Task
	err = s.steer(ctx, func(ctx context.Context, daemon *client.Client) error {
		task, err = daemon.Submit(ctx, id, client.Submission{Agent: in.AgentID, Lease: s.claims.lease(id), Result: result})
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	s.claims.drop(id)
	return outcomeOf(task), nil
}

// result makes an AgentTaskResult of the arguments.
func (in *submitArgs) result() (jsontext.Value, error) {
	for name, value := range map[string]string{"agent_id": in.AgentID, "status": in.Status, "summary": in.Summary} {
		if value == "" {
			return nil, errors.New(name + ": required")
		}
	}
	if !slices.Contains([]envelope.Status{envelope.OK, envelope.Failed, envelope.Partial}, envelope.Status(in.Status)) {
		return nil, errors.New("status: must be ok, error or partial")
	}
	output := map[string]any{"summary": in.Summary, "actions": []any{}}
	if in.Actions != nil {
		output["actions"] = in.Actions
	}
	result := map[string]any{
		"schema_version": envelope.SchemaVersion, "task_id": in.TaskID, "agent_id": in.AgentID, "status": in.Status, "output": output,
	}
	if in.Confidence != nil {
		result["confidence"] = in.Confidence
	}
	return json.Marshal(result, json.Deterministic(true))
}
