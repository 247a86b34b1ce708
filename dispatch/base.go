package dispatch

// A base is what the upper components of the engine are built on.
type base struct {
	*shared
	writer    *writer
	reader    *reader
	meters    *meters
	history   *history
	messenger *messenger
	publisher *publisher
	canceller *canceller
}

// newBase makes the lower components.
func newBase(s *shared, kin *kin, endings chan struct{}) *base {
	b := &base{shared: s, writer: &writer{shared: s}, history: &history{shared: s}}
	b.reader = &reader{shared: s, writer: b.writer}
	b.meters = &meters{shared: s, writer: b.writer}
	b.messenger = &messenger{shared: s, writer: b.writer, notifyQueue: newNotifyQueue()}
	b.publisher = &publisher{
		shared: s, writer: b.writer, reader: b.reader, calls: newCalls(), endings: endings, missing: make(chan struct{}, 1),
	}
	b.canceller = &canceller{shared: s, writer: b.writer, reader: b.reader, messenger: b.messenger, kin: kin}
	return b
}
