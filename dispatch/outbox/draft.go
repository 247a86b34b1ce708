package outbox

import (
	"sync"

	"mailboxd/dispatch/store"
)

// MayDraft reports whether a draft of the result of a task is worth its while. While other
// runs are being finished these keep the disk busy, and nothing is gained.
func (pb *Publisher) MayDraft(seq int64) bool {
	runs := pb.Runs.Of(seq)
	return len(pb.endings) <= 1 && len(runs) == 1 && runs[0].HasFinalResult()
}

// CommitWithDraft commits the end of a task, and writes the draft of its result meanwhile.
func (pb *Publisher) CommitWithDraft(seq int64, result []byte, commit func() error) (f *store.Draft, err error) {
	f = &store.Draft{Result: result}
	var committing sync.WaitGroup
	committing.Go(func() { err = commit() })
	f.File, _ = pb.Box.DraftResult(f.Result, resultMode) // here, for it takes longer; what fails is met again by who puts it
	committing.Wait()
	for _, r := range pb.Runs.Of(seq) {
		r.Draft.Store(f)
	}
	return f, err
}

// putFile places a result file: as it was drafted, if it was.
func (pb *Publisher) putFile(f publication) error {
	if drafted := f.draft.Of(f.result); drafted != nil {
		return drafted.Put(f.row.ID)
	}
	return pb.Box.PutResult(f.row.ID, f.result, resultMode)
}
