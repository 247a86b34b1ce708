package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// A decision is an approval or a denial that a person began on the page, or that the work of a task
// is applied or discarded. It counts once the person has typed its number at the terminal of mailboxd web, where the daemon asks for it, or
// once a passkey signed it. So a cookie never approves, and a program that drives the browser
// doesn't either. The person confirms a new passkey in the same way, by its number.
type decision struct {
	ID     string // of the page that shows it
	Verb   string
	Task   envelope.ID
	Number string // to be typed
	Until  time.Time
	Signed bool // the ssh-agent signs it

	Content string       // all that it is about, in the lines that the terminal shows
	Changes *changesData // the difference that an answer waits with, in the layout of the page
	changes *changesData // as it was when the decision began

	Again    bool        // a denied task is done once more, with the note
	Round    envelope.ID // the task that does it
	RoundWhy string      // there is none; "" if there is

	Passkey string // the options of WebAuthn for the passkey that signs it; "": none does
	Line    string // of a new passkey, instead of a decision
	Sends   string // what is sent, instead of a decision
	Next    string // the page that shows what was sent

	Done bool
	Why  string // it was not made; "" if it was

	Unknown bool // the daemon was asked for it, and did not answer
	Partly  bool // a part of what was sent was done
}

// decisions are those of the page. One is made at a time, since there is one terminal.
type decisions struct {
	begun chan job // has room for one

	mu   sync.Mutex // guards list
	list map[string]job
}

// A job is a decision to carry out.
type job struct {
	*decision
	word  client.Decision
	taken bool             // the passkey has signed it
	show  func()           // shows at the terminal what the passkey signs
	asked client.Statement // what is signed

	do func(context.Context) error // sends what the page shows, instead of a decision
}

// serve carries decisions out until ctx ends.
func (d *decisions) serve(ctx context.Context, carryOut func(context.Context, job) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-d.begun:
			d.end(next.decision, carryOut(ctx, next))
		}
	}
}

// An askingError says that another decision is not over.
type askingError struct{ decision string }

func (*askingError) Error() string {
	return "another decision waits at the terminal; end that one first"
}

// typingTime is how long the daemon waits for the number, and the page for the passkey.
const typingTime = time.Minute

// add adds a decision. It is refused while another one is made at the terminal or with the
// signature of a passkey. It ends one that waits for a passkey: a passkey signs only the
// decision that the terminal showed last. So it is shown before another one can be added.
func (d *decisions) add(one job) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.list {
		if !other.Done && (other.Passkey == "" || other.taken) {
			return &askingError{other.ID}
		}
	}
	for _, other := range d.list {
		if !other.Done {
			other.Done, other.Why = true, "another decision was begun after it"
		}
	}
	if len(d.list) > 100 {
		clear(d.list)
	}
	if d.list == nil {
		d.list = map[string]job{}
	}
	switch {
	case one.Passkey == "":
		d.begun <- one
	case one.show != nil:
		one.show()
	}
	d.list[one.ID] = one
	return nil
}

// endLate ends a decision that no passkey signed in time. The caller holds mu.
func endLate(one job) {
	if one.Passkey != "" && !one.Done && !one.taken && time.Now().After(one.Until) {
		one.Done, one.Why = true, fmt.Sprintf("no passkey signed it within %s", typingTime)
	}
}

// take returns the decision that waits for a passkey, once, and until its time is over.
func (d *decisions) take(id string) (job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.list[id]
	if ok {
		endLate(one)
	}
	if !ok || one.Done || one.Passkey == "" || one.taken {
		return job{}, false
	}
	one.taken = true
	d.list[id] = one
	return one, true
}

// find returns a copy of a decision.
func (d *decisions) find(id string) (decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.list[id]
	if !ok {
		return decision{}, false
	}
	endLate(one)
	return *one.decision, true
}

// setNext says which page shows what was sent.
func (d *decisions) setNext(one *decision, next string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.Next = next
}

// What says what a decision is about, in words.
func (one decision) What() string {
	if one.isAboutWork() {
		return "the work of the task"
	}
	return "the task"
}

// words says what is decided or sent, for the terminal.
func (one decision) words() string {
	if one.Sends != "" {
		return "to send: " + term.OneLine(one.Sends)
	}
	return fmt.Sprintf("%s %s %s", one.Verb, one.What(), one.Task)
}

// Made says that the decision was made.
func (one decision) Made() string {
	return map[string]string{"approve": "Approved", "deny": "Denied", "apply": "Applied", "discard": "Discarded"}[one.Verb]
}

func (one decision) isAboutWork() bool { return one.Verb == "apply" || one.Verb == "discard" }

// end records how a decision ended.
func (d *decisions) end(one *decision, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.Done = true
	if err != nil {
		one.Why, one.Unknown, one.Partly = err.Error(), errors.Is(err, errUnknown), errors.Is(err, errPartly)
		one.Why = strings.TrimPrefix(one.Why, errPartly.Error()+"\n")
	}
	if _, unconfirmed, found := strings.Cut(one.Why, "not confirmed at a terminal: "); found {
		one.Why = unconfirmed // what comes before it names this process
	}
}

// decide begins a decision about exactly what the page showed.
func (s *server) decide(w http.ResponseWriter, r *http.Request, daemon *client.Client, id envelope.ID) {
	begun, err := s.readDecision(r, daemon, id)
	s.begin(w, r, begun, err)
}

// begin has a person prove what was read of a form, on a page of its own.
func (s *server) begin(w http.ResponseWriter, r *http.Request, one job, err error) {
	if err == nil {
		err = s.decisions.add(one)
	}
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	http.Redirect(w, r, "/decisions/"+one.ID, http.StatusSeeOther)
}

// newDecision returns a decision with a number for the terminal. A line is that of a new passkey.
func newDecision(verb string, id envelope.ID, line string) *decision {
	number, err := rand.Int(rand.Reader, big.NewInt(90))
	if err != nil {
		panic("read random number: " + err.Error()) // crypto/rand never fails
	}
	until := time.Now().Add(typingTime).Round(0) // the monotonic clock stops while the machine sleeps
	return &decision{ID: rand.Text(), Verb: verb, Task: id, Line: line, Number: fmt.Sprint(10 + number.Int64()), Until: until}
}

// readDecision reads a form, and asks the daemon which proof the decision needs.
func (s *server) readDecision(r *http.Request, daemon *client.Client, id envelope.ID) (job, error) {
	verb, digest := r.PathValue("verb"), r.PostFormValue("digest")
	switch {
	case !s.opts.Approve:
		return job{}, errOff
	case digest == "":
		return job{}, &client.Error{Kind: client.BadRequest, Message: "the form names no question"}
	case verb == "deny" && !hasWords(r):
		return job{}, &client.Error{Kind: client.BadRequest, Message: "a denial needs a reason"}
	}
	needs, err := statementAbout(r.Context(), daemon, verb, id, digest)
	if err != nil {
		return job{}, err
	}
	word, err := readWord(r, daemon, verb, id)
	if err != nil {
		return job{}, err
	}
	level, err := task.ParseProofLevel(needs.Needs)
	if err != nil {
		return job{}, err
	}
	one := newDecision(verb, id, "")
	if err := one.addContent(r.Context(), daemon, needs); err != nil {
		return job{}, err
	}
	if one.changes != nil && !one.isAboutWork() {
		word.Patch = cmp.Or(word.Patch, one.changes.Digest)
	}
	one.Content += view.NoteContent(word.Note, word.Again)
	one.Again, word.Number, one.Signed = word.Again, one.Number, level > task.ProofTerminal
	if keys := s.passkeysOf(needs.Passkeys); len(keys) > 0 {
		return s.askPasskey(job{decision: one, word: word, asked: needs}, keys), nil
	}
	return job{decision: one, word: word}, nil
}

// readWord reads the note of a decision, and whether the task is done once more after a denial.
func readWord(r *http.Request, daemon *client.Client, verb string, id envelope.ID) (client.Decision, error) {
	word := client.Decision{
		Terminal: true, Digest: r.PostFormValue("digest"), Patch: r.PostFormValue("patch"),
		Again: verb == "deny" && r.PostFormValue("again") != "",
	}
	found, err := daemon.Details(r.Context(), id)
	if err != nil {
		return word, err
	}
	if word.Note, err = noteOf(r, found); err != nil {
		return word, err
	}
	if word.Again {
		err = compose.CanRepeat(found)
	}
	return word, err
}

// statementAbout asks for the statement of a decision about what a person saw. Anything else is a
// *changedError with the difference.
func statementAbout(ctx context.Context, daemon *client.Client, verb string, id envelope.ID, digest string) (client.Statement, error) {
	needs, err := statementOf(ctx, daemon, verb, id, digest)
	if err != nil || needs.Digest == digest {
		return needs, questionChanged(ctx, daemon, id, err)
	}
	found, err := daemon.Details(ctx, id)
	if err != nil {
		return needs, err
	}
	return needs, workChanged(found, digest)
}

// statementOf asks the daemon what a person signs to make a decision, and which proof it needs.
func statementOf(ctx context.Context, daemon *client.Client, verb string, id envelope.ID, seen string) (client.Statement, error) {
	switch verb {
	case "approve":
		return daemon.Statement(ctx, id, string(task.Approved), "", seen)
	case "deny":
		return daemon.Statement(ctx, id, string(task.Denied), "", seen)
	}
	return daemon.WorkStatement(ctx, id, verb)
}

// carryOut has the daemon ask at the terminal, and make the decision. A signature alone is not
// enough: the ssh-agent may sign without asking anybody.
func (s *server) carryOut(ctx context.Context, one job) (err error) {
	s.terminal.Quietly(func() {
		switch {
		case one.Line != "":
			err = s.enrol(ctx, one.decision)
		case one.do != nil:
			err = s.sendConfirmed(ctx, one)
		default:
			err = s.ask(ctx, one.decision, one.word)
		}
	})
	return err
}

func (s *server) ask(ctx context.Context, one *decision, word client.Decision) error {
	r, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	if one.Signed {
		asked, err := statementOf(ctx, daemon, one.Verb, one.Task, word.Digest)
		if err != nil {
			return err
		}
		if asked.Task != one.Task || asked.Digest != word.Digest {
			return errChanged
		}
		if word.Proof, err = reader.Sign(ctx, asked); err != nil {
			return err
		}
	}
	err = send(ctx, daemon, one, word)
	if err == nil {
		s.decisions.sendRound(ctx, s.opts.Location, r, one)
	}
	return err
}

// send sends a decision to the daemon.
func send(ctx context.Context, daemon *client.Client, one *decision, word client.Decision) error {
	var err error
	work := client.ApplyOptions{Digest: word.Digest, Proof: word.Proof, Terminal: word.Terminal, Number: word.Number}
	switch one.Verb {
	case "approve":
		_, err = daemon.Approve(ctx, one.Task, word)
	case "deny":
		_, err = daemon.Deny(ctx, one.Task, word)
	case "apply":
		_, err = daemon.Apply(ctx, one.Task, work)
	case "discard":
		_, err = daemon.Discard(ctx, one.Task, work)
	}
	if _, answered := errors.AsType[*client.Error](err); err != nil && !answered {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}

// errUnknown says that the daemon got a decision and didn't answer.
var errUnknown = errors.New("the outcome is unknown; look at the task")

// decision shows a decision: its number, or how it ended.
func (s *server) decision(_ context.Context, q question) (page, error) {
	one, ok := s.decisions.find(q.PathValue("id"))
	if !ok {
		return page{}, &client.Error{Kind: client.NoTask, Message: "there is no such decision any more"}
	}
	if !one.Done {
		one.Changes = one.changes.in(layoutOf(q.Request))
	}
	return page{Name: "decision", Title: "Decision", Data: one}, nil
}

// errChanged says that the daemon asks something else than the page showed.
var errChanged = errors.New("what is asked has changed; look at it again")
