package mailbox

import "fmt"

// AppendInbox appends a task line to the inbox file of an agent that fetches its tasks, at
// a path relative to the root (AINL-21). As with AppendCallback, the line is on disk when it
// returns nil, and it follows no symlink.
func (b *Box) AppendInbox(path string, line []byte) error {
	err := CheckInbox(path)
	if err == nil {
		err = b.append(path, line)
	}
	if err != nil {
		return fmt.Errorf("append to inbox %s: %w", path, err)
	}
	return nil
}

// CheckInbox says why path can't be an inbox file; nil if it can. The path must be relative
// and clean, and outside tasks, results and mailboxd's own files.
func CheckInbox(path string) error { return checkAppended(path) }
