package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// workRoutes are the routes with which a person decides about the work of a task in its worktree.
func (d *Server) workRoutes() []route {
	return []route{
		{"GET", "/tasks/{id}/work", "What a person signs to apply or discard the work of a task, and the proof that the page needs for it.",
			"verb=apply|discard, as", nil, client.Statement{}, d.workStatement},
		{"POST", "/tasks/{id}/apply", "Puts the work of a task, from its worktree, into the repository that it began from.", "",
			client.ApplyOptions{}, client.Application{}, d.apply},
		{"POST", "/tasks/{id}/discard", "Keeps the work of a task from being applied; its worktree is removed with the next collection.", "",
			client.ApplyOptions{}, client.Task{}, d.discard},
	}
}

// workStage is the stage in the statement of a decision about work.
const workStage envelope.Approval = "work"

// workDecisions are the decisions in such a statement, by the verb.
var workDecisions = map[string]task.Decision{dispatch.VerbApply: "applied", dispatch.VerbDiscard: "discarded"}

// signedTime is how long the signature of what is no approval is valid, from its statement on.
const signedTime = 5 * time.Minute

// workStatement answers with what the caller has to sign to decide about the work of a task.
func (d *Server) workStatement(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	verb := r.FormValue("verb")
	if workDecisions[verb] == "" {
		return nil, bad("verb: must be apply or discard")
	}
	who, err := d.person(r, verb, id, r.FormValue("as"))
	if err != nil {
		return nil, err
	}
	w, err := d.engine.Work(r.Context(), verb, id)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, id, err)
	}
	c := workConsent(verb, w, time.Now().Add(signedTime).UTC().Truncate(time.Second))
	return toSign(d.opts.Proofs(), who.Name(""), w.Task, c, task.ProofTerminal), nil
}

// workConsent is a decision about work that is signed until a time. The end of the run stands for
// the time of the question.
func workConsent(verb string, w dispatch.Work, until time.Time) task.Consent {
	return task.Consent{
		Stage: workStage, Decision: workDecisions[verb], Digest: w.Digest(), Asked: w.Run.Finished, Expires: until,
		Proof: task.Proof{Expires: until},
	}
}

// apply puts the work of a task into a repository of the user. An agent may not call it: the work
// may be its own.
func (d *Server) apply(r *http.Request) (any, error) {
	id, by, options, err := d.workDecider(r, dispatch.VerbApply)
	if err != nil {
		return nil, err
	}
	done, err := d.engine.Apply(r.Context(), id, options.Branch, by)
	return client.Application(done), err
}

// discard keeps the work of a task from being applied. An agent may not call it.
func (d *Server) discard(r *http.Request) (any, error) {
	id, by, options, err := d.workDecider(r, dispatch.VerbDiscard)
	if err == nil && options.Branch {
		err = bad("branch: only of apply")
	}
	if err == nil {
		err = d.engine.Discard(r.Context(), id, by)
	}
	if err != nil {
		return nil, err
	}
	return d.records.Latest(r.Context(), id)
}

// workDecider reads a decision about work, and verifies its proof if it has one.
func (d *Server) workDecider(r *http.Request, verb string) (id envelope.ID, by dispatch.WorkDecider, options client.ApplyOptions, err error) {
	if id, err = idIn(r); err != nil {
		return id, by, options, err
	}
	if err = read(r, &options); err != nil {
		return id, by, options, err
	}
	if err = d.maySteer(r, verb, id); err != nil {
		return id, by, options, err
	}
	by = dispatch.WorkDecider{Who: peerIn(r.Context()).name(), Digest: options.Digest}
	if options.Terminal || options.Proof != nil {
		err = d.proveWork(r, verb, id, options, &by)
	}
	return id, by, options, err
}

// proveWork adds to a decision about work its proof: the number that is typed at the caller's
// terminal, or the signature that the caller sent. With both, the signature is the proof. The
// decision is about the work that the person saw, or that the terminal shows.
func (d *Server) proveWork(r *http.Request, verb string, id envelope.ID, options client.ApplyOptions, by *dispatch.WorkDecider) error {
	w, err := d.engine.Work(r.Context(), verb, id)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	by.Digest = cmp.Or(by.Digest, w.Digest())
	if options.Terminal {
		if err := d.confirmWork(r.Context(), verb, id, options.Number, by); err != nil {
			return err
		}
	}
	if options.Proof == nil {
		return nil
	}
	who, err := d.person(r, verb, id, options.As)
	if err != nil {
		return err
	}
	c := workConsent(verb, w, options.Proof.Expires)
	c.Decider, c.Digest = who.Name(""), by.Digest
	if err := addSignature(&c, *options.Proof); err != nil {
		return err
	}
	if err := d.opts.Proofs().CheckSigned(w.Task, c, time.Now()); err != nil {
		return d.refuseWork(r.Context(), verb, id, err.Error())
	}
	by.Who, by.Proof = c.Decider, c.Proof
	return nil
}

// confirmWork has a person type a number at the caller's terminal, which shows the work.
func (d *Server) confirmWork(ctx context.Context, verb string, id envelope.ID, number string, by *dispatch.WorkDecider) error {
	details, err := d.records.Details(ctx, id)
	if err != nil {
		return err
	}
	text, digest := (&view.Details{TaskDetails: details}).WorkContent()
	if digest != by.Digest {
		why := fmt.Sprintf("%s %s: the patch is another one than was shown; look at it again: %s", verb, id, view.Command("diff", id))
		return &client.Error{Kind: client.Conflict, Message: why}
	}
	question := fmt.Sprintf("mailboxd: %s asks to %s the work of the task %s.\n%s", by.Who, verb, id, text)
	terminal, err := confirmAtTerminal(ctx, peerIn(ctx), question, number)
	if err != nil {
		return d.refuseWork(ctx, verb, id, "the decision was not confirmed at a terminal: "+err.Error())
	}
	by.Proof = task.Proof{Kind: proof.KindTerminal, Terminal: terminal}
	return nil
}

// refuseWork records that a decision about work was not proven, and returns the error of it.
func (d *Server) refuseWork(ctx context.Context, verb string, id envelope.ID, why string) error {
	p := peerIn(ctx)
	if err := d.engine.RefuseApproval(context.WithoutCancel(ctx), id, p.String(), why); err != nil {
		return err
	}
	return forbidden("%s may not %s: %s", p, verb, why)
}
