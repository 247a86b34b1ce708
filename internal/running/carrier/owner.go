package carrier

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
)

// OwnerOptions connect an owner. Its functions receive messages that Check accepts and whose names are those
// of the runner that sent them. They are called one at a time for each kind of message, so they must not
// block; each calls answer once, at any time.
type OwnerOptions struct {
	Options
	Hello func(m fleet.Hello, answer func(fleet.Reply))
	Claim func(m fleet.Claim, answer func(fleet.Reply))
	Beat  func(m fleet.Beat, answer func(fleet.Reply))
	Note  func(m fleet.Note, answer func(fleet.NoteReply))

	// Done receives outcomes, those also that the hub kept. The hub keeps one of these until the answer is
	// Settled, Fenced or Refused.
	Done func(m fleet.Done, answer func(fleet.DoneReply))

	// Closed is called once when a message of a runner was malformed, with the reason. No message of that
	// runner is received until Reopen.
	Closed func(runner, reason string)

	// BucketBytes bounds each bucket of a runner, as far as the hub has space for all bounds; 0: 4 GiB.
	BucketBytes int64
}

// An Owner is the connection of an owner.
type Owner struct {
	options OwnerOptions
	root    string
	conn    *link
	js      jetstream.JetStream

	ensuring sync.Mutex // allows one bucket at a time: the hub may reserve more than it has for two

	mu     sync.Mutex
	closed map[string]string // runners whose link is closed, and why

	renewing sync.Mutex               // allows one Renew at a time; guards late
	late     jetstream.ConsumeContext // of the outcomes that the hub kept
	lateLife context.Context          // of the connection when late began
}

// Times and sizes of what the hub keeps.
const (
	keepLate    = 7 * 24 * time.Hour
	bucketBytes = 4 << 30
	lateBytes   = 1 << 30
)

// DialOwner connects an owner, and receives. The connection comes back by itself until Close.
func DialOwner(ctx context.Context, o OwnerOptions) (*Owner, error) {
	w := &Owner{options: o, root: o.rootName(), closed: map[string]string{}}
	if runner := o.Credentials.Runner; runner != "" {
		return nil, fmt.Errorf("connect to hub %s: the credentials are those of runner %s; use hub.nk, which mailboxd-hub init wrote", o.URL, runner)
	}
	var err error
	if w.conn, err = o.dial(ownerInbox); err != nil {
		return nil, err
	}
	if w.js, err = jetstream.New(w.conn.Conn); err == nil {
		err = w.receive()
	}
	if err == nil {
		err = w.receiveLate(ctx)
	}
	if err != nil {
		w.conn.Close()
		return nil, fmt.Errorf("connect to hub %s: %w", o.URL, err)
	}
	return w, nil
}

// Close ends the connection.
func (o *Owner) Close() { o.conn.Close() }

// Connected reports whether the hub is connected now.
func (o *Owner) Connected() bool { return o.conn.IsConnected() }

// TakeEpoch takes the next epoch, which is greater than least and than each one that an owner took before.
func (o *Owner) TakeEpoch(ctx context.Context, least int64) (int64, error) {
	return o.epoch(ctx, func(taken int64) int64 { return max(taken, least) + 1 })
}

// epoch changes the epoch at the hub, which is 0 at first, and returns the new one.
func (o *Owner) epoch(ctx context.Context, change func(taken int64) int64) (int64, error) {
	kv, err := o.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: ownerKV(o.root), History: 1})
	if err != nil {
		return 0, fmt.Errorf("open epoch of the owner: %w", err)
	}
	for {
		taken, last := int64(0), uint64(0)
		entry, err := kv.Get(ctx, "epoch")
		if err == nil {
			last = entry.Revision()
			taken, err = strconv.ParseInt(string(entry.Value()), 10, 64)
		}
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			return 0, fmt.Errorf("read epoch of the owner: %w", err)
		}
		epoch := change(taken)
		if epoch == taken {
			return epoch, nil
		}
		_, err = kv.Update(ctx, "epoch", []byte(strconv.FormatInt(epoch, 10)), last)
		if err == nil {
			return epoch, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return 0, fmt.Errorf("take epoch of the owner: %w", err)
		}
	}
}

// Renew makes what the hub keeps for the owner, where it is missing: after the connection was lost, the hub may be one
// that lost its disk. Ensure does it for a runner. The epoch is that of the owner.
func (o *Owner) Renew(ctx context.Context, epoch int64) error {
	ctx, stop := o.conn.within(ctx)
	defer stop()
	o.renewing.Lock()
	defer o.renewing.Unlock()
	if o.lateLife.Err() != nil {
		if err := o.receiveLate(ctx); err != nil {
			return err
		}
	}
	_, err := o.epoch(ctx, func(taken int64) int64 { return max(taken, epoch) })
	return err
}

// Ensure makes the buckets of a runner, if the hub doesn't have them.
func (o *Owner) Ensure(ctx context.Context, runner string) error {
	if err := fleet.Name(runner); err != nil {
		return err
	}
	most := o.options.BucketBytes
	if most == 0 {
		most = bucketBytes
	}
	for _, bucket := range []string{inBucket(runner), outBucket(runner)} {
		if err := o.ensure(ctx, bucket, bucket == inBucket(runner), most); err != nil {
			return fmt.Errorf("make bucket %s: %w", bucket, err)
		}
	}
	return nil
}

// noStorage says that the hub has less space than the limits of all its buckets together.
const noStorage jetstream.ErrorCode = 10047

// Limits of the messages of a bucket.
const (
	chunkBytes   = 128 << 10 // of an object, in one message
	messageBytes = chunkBytes + 4<<10
	moreMessages = 16 // describe objects of a bucket that has few chunks
)

// ensure makes a bucket, as an object store of NATS. The hub reserves its bytes. Where it has less space than all of
// them, number and size of its messages bound a bucket, which reserves nothing. A direct bucket answers with messages as
// they are, so it has none that a runner made.
func (o *Owner) ensure(ctx context.Context, bucket string, direct bool, most int64) error {
	o.ensuring.Lock()
	defer o.ensuring.Unlock()
	c := jetstream.StreamConfig{
		Name: "OBJ_" + bucket, Subjects: []string{"$O." + bucket + ".C.>", "$O." + bucket + ".M.>"}, MaxAge: keepLate, MaxBytes: most,
		MaxMsgSize: messageBytes, Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: direct, Replicas: 1,
	}
	_, err := o.js.CreateOrUpdateStream(ctx, c)
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok && refused.ErrorCode == noStorage {
		c.MaxBytes, c.MaxMsgs = -1, most/chunkBytes+moreMessages
		_, err = o.js.CreateOrUpdateStream(ctx, c)
	}
	return err
}

// Order sends a hint to a runner.
func (o *Owner) Order(runner string, order fleet.Order) error {
	text, err := fleet.Encode(order)
	if err != nil {
		return err
	}
	return o.conn.Publish(subject(o.root, "to", runner, "order"), text)
}

// Reopen receives messages of a runner again whose link was closed.
func (o *Owner) Reopen(runner string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.closed, runner)
}

// Follow calls line with the parts of the output of a run that its runner sends from now on, until stop is
// called. The runner sends them after an order to follow.
func (o *Owner) Follow(runner string, token fleet.Token, line func(fleet.LogLine)) (stop func(), err error) {
	if err := errors.Join(fleet.Name(runner), token.Check()); err != nil {
		return nil, err
	}
	s, err := o.conn.Subscribe(subject(o.root, "log", runner, string(token)), func(m *nats.Msg) {
		var l fleet.LogLine
		if o.admit(m, runner) && o.decode(m.Data, runner, &l) {
			line(l)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("follow run %s: %w", token, err)
	}
	return func() { _ = s.Unsubscribe() }, nil
}

// close closes the link of a runner.
func (o *Owner) close(runner, reason string) {
	o.mu.Lock()
	_, was := o.closed[runner]
	if !was {
		o.closed[runner] = reason
	}
	o.mu.Unlock()
	if !was && o.options.Closed != nil {
		o.options.Closed(runner, reason)
	}
}

// admit reports whether a message comes from a runner whose link is open. The hub has checked that the sender may
// use the subject. A message without the header, or with the inbox of another one, is what the hub sends on
// behalf of another runner, so it closes no link.
func (o *Owner) admit(m *nats.Msg, runner string) bool {
	if m.Header.Get(header) != runner {
		return false
	}
	if m.Reply != "" && !strings.HasPrefix(m.Reply, inbox(o.root, runner)+".") {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, closed := o.closed[runner]
	return !closed
}

// decode reads a message of a runner, or closes its link.
func (o *Owner) decode(text []byte, runner string, into interface{ Check() error }) bool {
	if err := fleet.Decode(text, into); err != nil {
		o.close(runner, "a message is malformed: "+err.Error())
		return false
	}
	return true
}
