package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// errOff says that decisions on the page are off, and so is what they need.
var errOff = &client.Error{Kind: client.Forbidden, Message: "decisions on the page are off (web.approve: off)"}

// host is the host of the page without its port, which passkeys are made for.
func (s *server) host() string {
	host, _, _ := net.SplitHostPort(s.guard.Host())
	return host
}

// passkeysOf returns those of an approver's passkeys that this page can ask for.
func (s *server) passkeysOf(lines []string) (all []proof.Passkey) {
	for _, line := range lines {
		if p, err := proof.ParsePasskey(line); err == nil && p.Host == s.host() {
			all = append(all, p)
		}
	}
	return all
}

// askPasskey has a decision wait for the signature of one of the approver's passkeys. The terminal
// shows what will be signed, with the plan, since the dialog of the browser doesn't.
func (s *server) askPasskey(one job, keys []proof.Passkey) job {
	var allowed []any
	for _, key := range keys {
		allowed = append(allowed, map[string]string{"type": "public-key", "id": urlText(key.ID)})
	}
	asked := one.asked
	one.Passkey = optionsOf(map[string]any{
		"challenge": urlText(proof.Challenge(reader.StatementOf(asked))), "rpId": s.host(), "allowCredentials": allowed,
		"userVerification": "required", "timeout": typingTime.Milliseconds(),
	})
	one.word.Terminal, one.word.Proof = false, &client.Signature{Kind: proof.KindPasskey, Expires: asked.Expires}
	what, about, covers := "to "+one.words(), fmt.Sprintf("revision %d, ", asked.Revision), "is for this decision alone"
	if one.Sends != "" {
		what, about, covers = one.words(), "", alsoCovers+", and approves nothing"
	}
	text := fmt.Sprintf("mailboxd: the page asks for a passkey of %s %s.\n%s\n    signed   mailbox %s, %sstage %s, %s, asked %s, until %s\n"+
		"Use the passkey within %s if the page shows the same. It %s.\n",
		term.OneLine(asked.Approver), what, one.Content, term.OneLine(asked.Mailbox), about, asked.Stage, asked.Decision,
		term.Stamp(asked.Asked), term.Stamp(asked.Expires), typingTime, covers)
	one.show = func() { s.terminal.Print("\r\n" + strings.ReplaceAll(text, "\n", "\r\n")) }
	return one
}

// addContent adds to a decision all that its statement is about, in the lines that mailboxd approve
// prints, and the daemon for a decision by number; and the difference that an answer waits with.
func (one *decision) addContent(ctx context.Context, daemon *client.Client, asked client.Statement) error {
	found, err := daemon.Details(ctx, asked.Task)
	if err != nil {
		return err
	}
	if one.isAboutWork() {
		return one.addWork(found, asked)
	}
	text, last := (&view.Details{TaskDetails: found, Chosen: asked.Digest}).AskedContent()
	if last.Revision != asked.Revision || last.Stage != asked.Stage || last.Digest != asked.Digest || !last.Asked.Equal(asked.Asked) {
		return &client.Error{Kind: client.Conflict, Message: errChanged.Error()}
	}
	one.Content = text
	if last.Stage == envelope.ApprovalPost {
		one.changes = changesOf(found, layout{})
		return one.checkShown()
	}
	return nil
}

// prove makes a decision with the signature of a passkey.
func (s *server) prove(w http.ResponseWriter, r *http.Request) {
	id, made := r.PathValue("id"), r.PostFormValue("credential")
	if made == "" { // the form was sent without its script: the passkey keeps its time
		s.failWith(w, r, &client.Error{Kind: client.BadRequest, Message: "the form has no signature of a passkey"})
		return
	}
	one, ok := s.decisions.take(id)
	if !ok {
		s.failWith(w, r, &client.Error{Kind: client.Conflict, Message: "no decision waits for this passkey any more"})
		return
	}
	// A browser that is gone doesn't take a signature back.
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), answerTime)
	defer stop()
	err := s.decideSigned(ctx, one, []byte(made))
	how := "The passkey signed"
	switch {
	case errors.Is(err, errUnknown) || errors.Is(err, errPartly):
		how = strings.TrimSuffix(sentence(term.OneLine(err.Error())), ".")
	case err != nil && one.Sends != "":
		how = "Nothing was sent: " + term.OneLine(err.Error())
	case err != nil:
		how = "Nothing was decided: " + term.OneLine(err.Error())
	}
	s.terminal.Print(fmt.Sprintf("%s: %s.\r\n", how, one.words()))
	s.decisions.end(one.decision, err) // after it the terminal may show another one
	http.Redirect(w, r, "/decisions/"+id, http.StatusSeeOther)
}

// answerTime is how long the daemon may take to verify a signature.
const answerTime = 30 * time.Second

// decideSigned sends the signature to the daemon, which verifies it. A signature that was made on
// a page of another port isn't one of this page: any program can serve one there.
func (s *server) decideSigned(ctx context.Context, one job, made []byte) error {
	origin, kept, err := proof.SignedAt(made)
	if err != nil {
		return err
	}
	if origin != s.origin() {
		return fmt.Errorf("the passkey was used on another page: %q", origin)
	}
	one.word.Proof.Signature = string(kept)
	if one.do != nil {
		return s.sendSigned(ctx, one, one.word.Proof)
	}
	r, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	err = send(ctx, daemon, one.decision, one.word)
	if err == nil {
		s.decisions.sendRound(ctx, s.opts.Location, r, one.decision)
	}
	return err
}

func (s *server) origin() string { return "http://" + s.guard.Host() }

// newPasskey shows the form that makes a passkey.
func (s *server) newPasskey(context.Context, question) (page, error) {
	if !s.opts.Approve {
		return page{}, errOff
	}
	var kinds []any
	for _, algorithm := range []int{-7, -8, -257} { // ES256, EdDSA and RS256 of COSE
		kinds = append(kinds, map[string]any{"type": "public-key", "alg": algorithm})
	}
	options := optionsOf(map[string]any{
		"challenge": rand.Text(), "attestation": "none", "pubKeyCredParams": kinds, "timeout": typingTime.Milliseconds(),
		"rp":                     map[string]string{"id": s.host(), "name": "mailboxd"},
		"user":                   map[string]string{"id": rand.Text(), "name": "approver of " + s.root, "displayName": "mailboxd"},
		"authenticatorSelection": map[string]string{"userVerification": "required"},
	})
	return page{Name: "passkey", Title: "Passkey", Data: options}, nil
}

// addPasskey begins to enrol a passkey that the browser made. Its line is printed at the terminal
// once the person has typed the number of the page there. It counts when the person has added the
// line to the approvers: no page and no daemon does that.
func (s *server) addPasskey(w http.ResponseWriter, r *http.Request) {
	one, err := s.enrolment([]byte(r.PostFormValue("credential")))
	if err == nil {
		err = s.decisions.add(job{decision: one})
	}
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	http.Redirect(w, r, "/decisions/"+one.ID, http.StatusSeeOther)
}

func (s *server) enrolment(made []byte) (*decision, error) {
	if !s.opts.Approve {
		return nil, errOff
	}
	key, err := proof.NewPasskey(made, s.origin(), s.host())
	if err != nil {
		return nil, &client.Error{Kind: client.BadRequest, Message: err.Error()}
	}
	return newDecision("enrol", "", key.String()), nil
}

// enrol prints the line of a passkey, once its number was typed.
func (s *server) enrol(ctx context.Context, one *decision) error {
	if err := s.terminal.confirm(ctx, "The page made a passkey. It counts once its line is in the configuration.", one.Number); err != nil {
		return err
	}
	s.terminal.Print("\r\nAdd this line to the keys of your entry in approvers, with proof: person. Then type mailboxd reload.\r\n\r\n" + one.Line + "\r\n\r\n")
	return nil
}

// optionsOf encodes options of WebAuthn for the script of the page.
func optionsOf(options map[string]any) string {
	text, err := json.Marshal(options, json.Deterministic(true))
	if err != nil {
		panic("encode options of WebAuthn: " + err.Error()) // texts and numbers
	}
	return string(text)
}

func urlText(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
