package carrier

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
)

// names returns the runner, and the token unless the subject has none.
func names(of string) (runner string, token fleet.Token) {
	parts := strings.Split(of, ".")
	if len(parts) > 4 {
		token = fleet.Token(parts[4])
	}
	return parts[3], token
}

// receive subscribes to what runners send.
func (o *Owner) receive() error {
	for kind, handle := range map[string]func(*nats.Msg){
		"hello": func(m *nats.Msg) { serve(o, m, o.options.Hello, runnerOfHello) },
		"claim": func(m *nats.Msg) { serve(o, m, o.options.Claim, runnerOfClaim) },
		"beat":  func(m *nats.Msg) { serve(o, m, o.options.Beat, runnerOfBeat) },
		"done":  func(m *nats.Msg) { serve(o, m, o.options.Done, runnerOfDone) },
		"note":  func(m *nats.Msg) { serve(o, m, o.options.Note, runnerOfNote) },
	} {
		parts := []string{anyRunner}
		if kind == "done" || kind == "note" {
			parts = append(parts, "*")
		}
		if _, err := o.conn.Subscribe(subject(o.root, kind, parts...), handle); err != nil {
			return err
		}
	}
	return nil
}

func runnerOfHello(m fleet.Hello) (string, fleet.Token) { return m.Runner, "" }
func runnerOfClaim(m fleet.Claim) (string, fleet.Token) { return m.Runner, "" }
func runnerOfBeat(m fleet.Beat) (string, fleet.Token)   { return m.Runner, "" }
func runnerOfDone(m fleet.Done) (string, fleet.Token)   { return m.Runner, m.Token }
func runnerOfNote(m fleet.Note) (string, fleet.Token)   { return m.Runner, m.Token }

// checked is a message that can be checked, as a pointer.
type checked[M any] interface {
	*M
	Check() error
}

// accept decodes a message and compares its names with its subject.
func accept[M any, P checked[M]](o *Owner, at string, text []byte, namesOf func(M) (string, fleet.Token)) (message M, ok bool) {
	runner, token := names(at)
	if !o.decode(text, runner, P(&message)) {
		return message, false
	}
	if said, of := namesOf(message); said != runner || of != token {
		o.close(runner, fmt.Sprintf("a message names runner %.64q and token %.128q at subject %s", said, string(of), at))
		return message, false
	}
	return message, true
}

// serve hands a request to its function, and sends the answer.
func serve[M any, P checked[M], A any](o *Owner, m *nats.Msg, handle func(M, func(A)), namesOf func(M) (string, fleet.Token)) {
	runner, _ := names(m.Subject)
	if handle == nil || m.Reply == "" || !o.admit(m, runner) {
		return
	}
	message, ok := accept[M, P](o, m.Subject, m.Data, namesOf)
	if !ok {
		return
	}
	handle(message, func(answer A) {
		if text, err := fleet.Encode(answer); err == nil {
			_ = m.Respond(text) // a lost answer is asked for again
		}
	})
}

// receiveLate receives outcomes that the hub kept, in place of an earlier call.
func (o *Owner) receiveLate(ctx context.Context) error {
	life := o.conn.current()
	s, err := o.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: lateStream(o.root), Subjects: []string{subject(o.root, "late", "*", "*")}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgsPerSubject: 1, MaxAge: keepLate, MaxBytes: lateBytes, MaxMsgSize: fleet.MaxMessage,
	})
	if err != nil {
		return fmt.Errorf("make stream of late outcomes: %w", err)
	}
	c, err := s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "owner", AckPolicy: jetstream.AckExplicitPolicy, AckWait: fleet.VoidAfter,
	})
	if err != nil {
		return fmt.Errorf("read stream of late outcomes: %w", err)
	}
	next, err := c.Consume(o.takeLate)
	if err == nil && o.late != nil {
		o.late.Stop()
	}
	if err == nil {
		o.late, o.lateLife = next, life
	}
	return err
}

// takeLate hands an outcome that the hub kept to its function.
func (o *Owner) takeLate(m jetstream.Msg) {
	runner, _ := names(m.Subject())
	o.mu.Lock()
	_, closed := o.closed[runner]
	o.mu.Unlock()
	if closed || o.options.Done == nil || m.Headers().Get(header) != runner {
		_ = m.Term()
		return
	}
	message, ok := accept[fleet.Done](o, m.Subject(), m.Data(), runnerOfDone)
	if !ok {
		_ = m.Term()
		return
	}
	o.options.Done(message, func(answer fleet.DoneReply) {
		if answer.Later {
			_ = m.NakWithDelay(fleet.BeatEvery)
			return
		}
		_ = m.Ack()
	})
}
