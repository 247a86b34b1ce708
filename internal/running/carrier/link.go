package carrier

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/dial"
)

// Options connect one side to the hub.
type Options struct {
	URL         string      // tls://host:port, or nats://host:port on loopback
	Root        string      // which mailbox; "": that of Credentials
	Credentials Credentials // with an empty Seed, it logs in without a key

	// Changed, unless nil, is called when the connection is lost, with the reason, and when it is back, with nil.
	Changed func(lost error)
}

// ErrAway says that the hub, or the other side, didn't answer. The message may have arrived nevertheless.
var ErrAway = errors.New("no answer")

// ErrNoResponders says that the hub answered and the owner isn't connected to it. Nothing was received.
var ErrNoResponders = errors.New("the owner is not connected to the hub")

// ErrKey says that the hub doesn't accept the key.
var ErrKey = errors.New("the hub does not accept the key")

// header names the runner of a message. A message that the hub itself sends to a subject has none.
const header = "Mbx-Runner"

const (
	pingEvery  = 5 * time.Second
	dialTime   = 5 * time.Second
	pauseMost  = 2 * time.Second
	anyRunner  = "*"
	ownerInbox = "owner"
)

// subject returns the subject of a kind of message: mbx.ROOT.KIND.RUNNER and further parts.
func subject(root, kind string, rest ...string) string {
	return strings.Join(append([]string{"mbx", root, kind}, rest...), ".")
}

func lateStream(root string) string  { return "mbx_" + root + "_late" }
func ownerKV(root string) string     { return "mbx_" + root + "_owner" }
func inBucket(runner string) string  { return "in_" + runner }
func outBucket(runner string) string { return "out_" + runner }
func inbox(root, name string) string { return "_INBOX." + root + "." + name }
func (o Options) rootName() string   { return cmp.Or(o.Root, o.Credentials.Root) }

// CheckURL returns an error for an address that isn't used: one without TLS that isn't on loopback.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Errorf("address of the hub: %w", err)
	case u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.User != nil:
		return fmt.Errorf("address of the hub %q: want tls://host:port", address)
	case u.Scheme == "tls" || u.Scheme == "nats" && dial.IsLoopback(u.Hostname()):
		return nil
	case u.Scheme == "nats":
		return fmt.Errorf("address of the hub %q: it is not on this machine, so it needs TLS; write tls://%s", address, u.Host)
	}
	return fmt.Errorf("address of the hub %q: scheme %q is unknown; want tls://host:port", address, u.Scheme)
}

// A link is a connection that comes back by itself.
type link struct {
	*nats.Conn
	mu   sync.Mutex
	life context.Context // ends when the connection is lost
	end  context.CancelCauseFunc
}

var errLost = fmt.Errorf("%w: the connection to the hub was lost", ErrAway)

// begin begins a life of the connection.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == nil || l.life.Err() != nil {
		l.life, l.end = context.WithCancelCause(context.Background())
	}
}

// lost ends what waits for an answer, which doesn't come any more.
func (l *link) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(errLost)
}

// current returns a context that ends when the connection is lost, or has ended while it is.
func (l *link) current() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life
}

// within returns a context that ends with the life of the connection too.
func (l *link) within(ctx context.Context) (context.Context, func()) {
	life := l.current()
	ctx, end := context.WithCancelCause(ctx)
	undo := context.AfterFunc(life, func() { end(errLost) })
	return ctx, func() { undo(); end(nil) }
}

// dial connects as a name, which is part of the inbox. It returns ErrKey for a wrong key.
func (o Options) dial(name string) (*link, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	if err := fleet.Name(o.rootName()); err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	changed := o.changes()
	refused := func(err error) {
		if errors.Is(err, nats.ErrAuthorization) {
			changed(fmt.Errorf("%w%s", ErrKey, nextStep(ErrKey, name)))
		}
	}
	l := &link{}
	l.begin()
	options := []nats.Option{
		nats.Name("mailboxd " + name), nats.CustomInboxPrefix(inbox(o.rootName(), name)), nats.Timeout(dialTime),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.ReconnectWait(pauseMost / 4), nats.ReconnectJitter(pauseMost/4, pauseMost/4), nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			l.lost()
			if !c.IsClosed() {
				changed(lostFor(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { l.begin(); changed(nil) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { refused(err) }),
	}
	if o.Credentials.Seed != "" {
		login, err := o.Credentials.Options()
		if err != nil {
			return nil, err
		}
		options = append(options, login...)
	}
	var err error
	l.Conn, err = nats.Connect(o.URL, options...)
	if errors.Is(err, nats.ErrAuthorization) {
		err = ErrKey
	}
	if err != nil {
		return nil, fmt.Errorf("connect to hub %s: %w%s", o.URL, err, nextStep(err, name))
	}
	return l, nil
}

// lostFor says that the connection is lost, and why if that is known.
func lostFor(err error) error {
	if err == nil {
		return errors.New("the connection to the hub is lost")
	}
	return fmt.Errorf("the connection to the hub is lost: %w", err)
}

// nextStep says what to do when a hub is not reached; "" if that is not known.
func nextStep(err error, name string) string {
	_, wrongName := errors.AsType[x509.HostnameError](err)
	_, wrongHub := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case errors.Is(err, ErrKey) && name == ownerInbox:
		return "; copy hub.nk of this hub, which mailboxd-hub init wrote"
	case errors.Is(err, ErrKey):
		return "; make a new key with: mailboxd-hub enroll " + name
	case errors.Is(err, nats.ErrNoServers):
		return "; start it with mailboxd-hub serve, or correct the address"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "; it has no certificate; write nats:// instead of tls://"
	case wrongName:
		return "; use a name that mailboxd-hub init --host got"
	case wrongHub:
		return "; copy the credentials of this hub, which have its certificate"
	}
	return ""
}

// changes returns a function that passes on what is new about a connection.
func (o Options) changes() func(lost error) {
	var mu sync.Mutex
	var last error
	return func(lost error) {
		mu.Lock()
		defer mu.Unlock()
		known := (lost == nil) == (last == nil) && (!errors.Is(lost, ErrKey) || errors.Is(last, ErrKey))
		if !known {
			last = lost
		}
		if !known && o.Changed != nil {
			o.Changed(lost)
		}
	}
}

// request sends a message and decodes the answer.
func request(ctx context.Context, l *link, to, runner string, message any, answer interface{ Check() error }) error {
	text, err := fleet.Encode(message)
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	ctx, stop := l.within(ctx)
	defer stop()
	m, err := l.RequestMsgWithContext(ctx, &nats.Msg{Subject: to, Data: text, Header: nats.Header{header: {runner}}})
	if err := unanswered(ctx, to, err); err != nil {
		return err
	}
	if err := fleet.Decode(m.Data, answer); err != nil {
		return fmt.Errorf("answer of the owner: %w", err)
	}
	return nil
}

// unanswered says why a request has no answer, from the error of the client. An answer that came just before the
// connection was lost is one.
func unanswered(ctx context.Context, to string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoResponders
	case errors.Is(context.Cause(ctx), errLost):
		return fmt.Errorf("send to %s: %w", to, errLost)
	}
	return fmt.Errorf("send to %s: %w: %w", to, ErrAway, err)
}
