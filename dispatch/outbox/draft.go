package outbox

import (
	"sync"

	"mailboxd/dispatch/store"
)

// MayDraft reports whether a draft of the result of a task saves time. It saves none while
// other runs finish, because these keep the disk busy.
func (pb *Publisher) MayDraft(seq int64) bool {
	runs := pb.Runs.Of(seq)
	return len(pb.endings) <= 1 && len(runs) == 1 && runs[0].HasFinalResult()
}

// CommitWithDraft commits the end of a task, and writes the draft of its result at the same
// time.
func (pb *Publisher) CommitWithDraft(seq int64, result []byte, commit func() error) (f *store.Draft, err error) {
	f = &store.Draft{Result: result}
	var committing sync.WaitGroup
	committing.Go(func() { err = commit() })
	f.File, _ = pb.Box.DraftResult(f.Result, resultMode) // in this goroutine, since it takes longer; putFile meets the same error again
	committing.Wait()
	for _, r := range pb.Runs.Of(seq) {
		r.Draft.Store(f)
	}
	return f, err
}

// putFile puts a result file: the draft, if there is one.
func (pb *Publisher) putFile(f publication) error {
	if drafted := f.draft.Of(f.result); drafted != nil {
		return drafted.Put(f.row.ID)
	}
	return pb.Box.PutResult(f.row.ID, f.result, resultMode)
}
