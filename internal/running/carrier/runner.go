package carrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
)

// A RunnerOptions connects a runner.
type RunnerOptions struct {
	Options
	Name  string            // of the runner; "": that of Credentials
	Order func(fleet.Order) // receives the hints of the owner; it must not block
}

// A Runner is the connection of a runner. Its requests end with an error that is ErrAway, ErrNoResponders or
// about the answer; the caller repeats them.
type Runner struct {
	name, root string
	conn       *link
	js         jetstream.JetStream
}

// DialRunner connects a runner. The connection comes back by itself until Close.
func DialRunner(o RunnerOptions) (*Runner, error) {
	r := &Runner{name: cmp.Or(o.Name, o.Credentials.Runner), root: o.rootName()}
	if err := fleet.Name(r.name); err != nil {
		return nil, err
	}
	var err error
	if r.conn, err = o.dial(r.name); err != nil {
		return nil, err
	}
	receive := func(m *nats.Msg) {
		var order fleet.Order
		if fleet.Decode(m.Data, &order) == nil && o.Order != nil {
			o.Order(order)
		}
	}
	_, err = r.conn.Subscribe(subject(r.root, "to", r.name, ">"), receive)
	if err == nil {
		r.js, err = jetstream.New(r.conn.Conn)
	}
	if err == nil {
		err = r.conn.FlushTimeout(dialTime)
	}
	if err != nil {
		r.conn.Close()
		return nil, fmt.Errorf("connect to hub %s: %w", o.URL, err)
	}
	return r, nil
}

// Close ends the connection.
func (r *Runner) Close() { r.conn.Close() }

// Connected reports whether the hub is connected now.
func (r *Runner) Connected() bool { return r.conn.IsConnected() }

// Hello sends a hello.
func (r *Runner) Hello(ctx context.Context, m fleet.Hello) (reply fleet.Reply, err error) {
	err = request(ctx, r.conn, subject(r.root, "hello", r.name), r.name, m, &reply)
	return reply, err
}

// Claim sends a claim and waits for its answer, which may take fleet.ClaimWait.
func (r *Runner) Claim(ctx context.Context, m fleet.Claim) (reply fleet.Reply, err error) {
	err = request(ctx, r.conn, subject(r.root, "claim", r.name), r.name, m, &reply)
	return reply, err
}

// Beat sends a beat.
func (r *Runner) Beat(ctx context.Context, m fleet.Beat) (reply fleet.Reply, err error) {
	err = request(ctx, r.conn, subject(r.root, "beat", r.name), r.name, m, &reply)
	return reply, err
}

// Note sends a note.
func (r *Runner) Note(ctx context.Context, m fleet.Note) (reply fleet.NoteReply, err error) {
	err = request(ctx, r.conn, subject(r.root, "note", r.name, string(m.Token)), r.name, m, &reply)
	return reply, err
}

// Done sends an outcome. If the owner isn't connected, the hub keeps the outcome for it, and late is true:
// the owner answers in Settled of a later report.
func (r *Runner) Done(ctx context.Context, m fleet.Done) (reply fleet.DoneReply, late bool, err error) {
	err = request(ctx, r.conn, subject(r.root, "done", r.name, string(m.Token)), r.name, m, &reply)
	if !errors.Is(err, ErrNoResponders) {
		return reply, false, err
	}
	text, err := fleet.Encode(m)
	if err != nil {
		return reply, false, err
	}
	to := subject(r.root, "late", r.name, string(m.Token))
	kept := &nats.Msg{Subject: to, Data: text, Header: nats.Header{header: {r.name}}}
	ctx, stop := r.conn.within(ctx)
	defer stop()
	if _, err := r.js.PublishMsg(ctx, kept, jetstream.WithMsgID(string(m.Token))); err != nil {
		return reply, false, fmt.Errorf("leave outcome %s at the hub: %w: %w", m.Token, ErrAway, err)
	}
	return reply, true, nil
}

// Log sends a part of the output of a run. It is lost if no one listens.
func (r *Runner) Log(token fleet.Token, line fleet.LogLine) error {
	text, err := fleet.Encode(line)
	if err != nil {
		return err
	}
	to := subject(r.root, "log", r.name, string(token))
	return r.conn.PublishMsg(&nats.Msg{Subject: to, Data: text, Header: nats.Header{header: {r.name}}})
}
