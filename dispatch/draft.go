package dispatch

import (
	"bytes"
	"sync"

	"mailboxd/mailbox"
)

// A draft is the result with which a turn is about to end its task, written and
// synced while the ledger takes that in: each is a wait for the disk. It has its
// name only once the ledger has its bytes, and is nothing when it does not get it.
type draft struct {
	result []byte
	file   *mailbox.Draft // nil: it could not be written
}

// commitBeside commits a turn, and writes the draft of what it shows meanwhile. It
// does not while other runs are being finished: these keep the disk busy then, and
// nothing is gained.
func (pb *publisher) commitBeside(t *turn, commit func() error) (f *draft, err error) {
	runs := pb.runs.of(t.row.Seq)
	if len(pb.endings) > 1 || len(runs) != 1 || !runs[0].showsItsOwn() || !pb.showsResult(t) {
		return nil, commit()
	}
	f = &draft{result: t.result()}
	var committing sync.WaitGroup
	committing.Go(func() { err = commit() })
	f.file, _ = pb.Box.DraftResult(f.result, resultMode) // here, for it takes longer; what fails is met again by who puts it
	committing.Wait()
	runs[0].draft.Store(f)
	return f, err
}

// showsResult reports whether a turn ends its task with the result of its run,
// and nobody has to agree to that.
func (pb *publisher) showsResult(t *turn) bool {
	return t.reviewRun == nil && !t.waits() && !t.overseen() && !reviewed(t.terms, t.o)
}

// of returns the file that has a result already; nil when there is none.
func (f *draft) of(result []byte) *mailbox.Draft {
	if f == nil || !bytes.Equal(f.result, result) {
		return nil
	}
	return f.file
}

// drop lets go of a draft that was not put.
func (f *draft) drop() {
	if f != nil && f.file != nil {
		f.file.Drop()
	}
}

// putFile places a result file: as it was drafted, if it was.
func (pb *publisher) putFile(f final) error {
	if drafted := f.draft.of(f.result); drafted != nil {
		return drafted.Put(f.row.ID)
	}
	return pb.Box.PutResult(f.row.ID, f.result, resultMode)
}
