package runner

import "mailboxd/internal/decisions/task"

// RunProcesses lists the live processes of the run in dir, including daemonized ones. A
// keeper may be ending them meanwhile.
func (k *Keepers) RunProcesses(dir string) ([]task.Survivor, error) {
	meta, _, err := ReadMeta(dir)
	var left []task.Survivor
	for _, e := range runEntries(dir, meta, leaderOf(meta)) {
		if !k.isKeeper(e.PID) { // a keeper can have the mark of its latest run
			left = append(left, task.Survivor{PID: e.PID, Command: e.Command})
		}
	}
	return left, err
}
