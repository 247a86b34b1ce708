package api

import (
	"net/http"

	"mailboxd/dispatch"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
)

// fetching are the routes for agents that fetch their tasks.
func (d *Server) fetching() []route {
	return []route{
		{"POST", "/claim", "Takes the oldest task that waits for an agent, so that no other client answers it until the lease ends.", "", client.Claim{}, client.Claimed{}, d.claim},
		{"POST", "/tasks/{id}/renew", "Has a lease last longer.", "", client.Renewal{}, client.Renewed{}, d.renew},
		{"POST", "/tasks/{id}/submit", "Answers a task that waits: the lease is needed while there is one.", "", client.Submission{}, client.Task{}, d.submit},
	}
}

func (d *Server) claim(r *http.Request) (any, error) {
	var request client.Claim
	if err := read(r, &request); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, "claim", ""); err != nil {
		return nil, err
	}
	p := peerIn(r.Context())
	l, found, err := d.engine.Claim(r.Context(), request.Agent, core.By{Who: p.name()}, p.claimer(request.As))
	if err != nil || !found {
		return client.Claimed{}, err
	}
	task := viewOf(l.Task)
	return client.Claimed{
		Task: &task, Request: l.Request, Lease: l.Token, Until: l.Until,
		Tools: l.Tools, Budget: l.Spend, Due: l.Deadline,
	}, nil
}

func (d *Server) renew(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	var request client.Renewal
	if err := read(r, &request); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, "renew", id); err != nil {
		return nil, err
	}
	until, err := d.engine.Renew(r.Context(), id, request.Agent, request.Lease)
	return client.Renewed{Until: until}, err
}

func (d *Server) submit(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	var request client.Submission
	if err := read(r, &request); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, "submit", id); err != nil {
		return nil, err
	}
	answer := dispatch.Submission{Agent: request.Agent, Token: request.Lease, Answer: request.Result}
	if err := d.engine.Submit(r.Context(), id, answer, core.By{Who: peerIn(r.Context()).name()}); err != nil {
		return nil, err
	}
	return d.records.Latest(r.Context(), id)
}
