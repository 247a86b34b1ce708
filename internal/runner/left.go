package runner

import "mailboxd/internal/task"

// Left lists the processes there are of the run in dir: its own, and what that
// started, wherever it went. Whoever hosts the run may be ending them meanwhile.
func (k *Keepers) Left(dir string) ([]task.Survivor, error) {
	meta, _, err := ReadMeta(dir)
	var left []task.Survivor
	for _, e := range remains(dir, meta, leaderOf(meta)) {
		if !k.isKeeper(e.PID) { // it has the mark of what it started last
			left = append(left, task.Survivor{PID: e.PID, Command: e.Command})
		}
	}
	return left, err
}
