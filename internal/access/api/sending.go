package api

import (
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// sendingRoutes are the routes with which a person proves what they send on the page of mailboxd web. They
// send nothing: the page appends a line, as every program does.
func (d *Server) sendingRoutes() []route {
	return []route{
		{"GET", "/sending", "What a person signs to send or change tasks on the page of `mailboxd web`, and the proof that the page needs for it.",
			"digest", nil, client.Statement{}, d.sendingStatement},
		{"POST", "/sending", "Verifies the signature of what a person sends on the page, and records a refusal. It sends nothing.", "",
			client.Sending{}, client.Statement{}, d.proveSending},
	}
}

// The stage and the decision in the statement of what a person sends. No approval has them, and no task
// is named, so the signature never counts as an approval.
const (
	sendStage envelope.Approval = "send"
	wasSent   task.Decision     = "sent"
)

// verbSend names what is refused.
const verbSend = "send"

// sendingConsent is what a person sends, signed until a time.
func sendingConsent(digest string, asked, until time.Time) task.Consent {
	return task.Consent{Stage: sendStage, Decision: wasSent, Digest: digest, Asked: asked, Expires: until, Proof: task.Proof{Expires: until}}
}

// sendingStatement answers with what the caller has to sign to send something.
func (d *Server) sendingStatement(r *http.Request) (any, error) {
	if err := d.maySteer(r, verbSend, ""); err != nil {
		return nil, err
	}
	digest := r.FormValue("digest")
	if err := checkDigest(digest); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	c := sendingConsent(digest, now, now.Add(signedTime).Truncate(time.Second))
	return toSign(d.opts.Proofs(), d.approver(peerIn(r.Context())).Name(""), task.Task{}, c, task.ProofTerminal), nil
}

// proveSending verifies the signature of what the caller sends.
func (d *Server) proveSending(r *http.Request) (any, error) {
	var asked client.Sending
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := d.maySteer(r, verbSend, ""); err != nil {
		return nil, err
	}
	if err := checkDigest(asked.Digest); err != nil {
		return nil, err
	}
	if asked.Proof == nil {
		return nil, bad("proof: is missing")
	}
	c := sendingConsent(asked.Digest, asked.Asked, asked.Proof.Expires)
	c.Decider = d.approver(peerIn(r.Context())).Name("")
	if err := addSignature(&c, *asked.Proof); err != nil {
		return nil, err
	}
	if err := d.opts.Proofs().CheckSigned(task.Task{}, c, time.Now()); err != nil {
		return nil, d.refuse(r, verbSend, "", err.Error())
	}
	return toSign(d.opts.Proofs(), c.Decider, task.Task{}, c, task.ProofTerminal), nil
}

// checkDigest refuses what is no SHA-256 in hexadecimal.
func checkDigest(text string) error {
	const length = 64
	if _, err := hex.DecodeString(text); err != nil || len(text) != length || strings.ToLower(text) != text {
		return bad("digest: must be the SHA-256 of what is sent, in hexadecimal")
	}
	return nil
}
