package dispatch

import (
	"sync"
)

// mayDraft reports whether a draft of the result of a task is worth its while. While other
// runs are being finished these keep the disk busy, and nothing is gained.
func (pb *publisher) mayDraft(seq int64) bool {
	runs := pb.runs.of(seq)
	return len(pb.endings) <= 1 && len(runs) == 1 && runs[0].showsItsOwn()
}

// commitBeside commits the end of a task, and writes the draft of its result meanwhile.
func (pb *publisher) commitBeside(seq int64, result []byte, commit func() error) (f *draft, err error) {
	f = &draft{result: result}
	var committing sync.WaitGroup
	committing.Go(func() { err = commit() })
	f.file, _ = pb.Box.DraftResult(f.result, resultMode) // here, for it takes longer; what fails is met again by who puts it
	committing.Wait()
	for _, r := range pb.runs.of(seq) {
		r.draft.Store(f)
	}
	return f, err
}

// putFile places a result file: as it was drafted, if it was.
func (pb *publisher) putFile(f final) error {
	if drafted := f.draft.of(f.result); drafted != nil {
		return drafted.Put(f.row.ID)
	}
	return pb.Box.PutResult(f.row.ID, f.result, resultMode)
}
