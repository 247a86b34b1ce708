package outbox

import (
	"mailboxd/dispatch/store"
	"mailboxd/internal/running/schedule"
)

// A Base holds the lower components of the engine, for the upper ones.
type Base struct {
	*store.Shared
	Writer    *store.Writer
	Reader    *store.Reader
	Meters    *store.Meters
	History   *store.History
	Messenger *Messenger
	Publisher *Publisher
	Canceller *Canceller
}

// NewBase makes the lower components.
func NewBase(s *store.Shared, endings chan struct{}) *Base {
	b := &Base{Shared: s, Writer: &store.Writer{Shared: s, Counts: store.NewCounts(s.Agents.Known)}, History: &store.History{Shared: s}}
	b.Reader = &store.Reader{Shared: s, Writer: b.Writer}
	b.Meters = &store.Meters{Shared: s, Writer: b.Writer}
	b.Messenger = &Messenger{Shared: s, writer: b.Writer, Notifications: schedule.NewDutyQueue(s.Queue)}
	b.Publisher = &Publisher{
		Shared: s, writer: b.Writer, reader: b.Reader, Callbacks: newCallbacks(), endings: endings, missing: make(chan struct{}, 1),
	}
	b.Canceller = &Canceller{Shared: s, writer: b.Writer, reader: b.Reader, messenger: b.Messenger}
	return b
}
