package reader

import (
	"bytes"
	"context"
	"io"
	"os/user"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/mailbox"
)

// UserName is the name of the user. Tasks that the user sends have it as their requester.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

// maxUnread is how many bytes at the end of a task file are read for lines that the daemon
// has not read.
const maxUnread = 1 << 20

// unread returns the id of the last task of the user among the lines of our task file that
// the daemon has not read; "" for none. Without it, a task that was just sent would not be
// the newest one.
func (r *Reader) unread(ctx context.Context) envelope.ID {
	file, err := dirtree.OpenRegular(filepath.Join(r.Root, mailbox.OwnTasks))
	if err != nil {
		return ""
	}
	defer file.Close()
	var now unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &now); err != nil {
		return ""
	}
	from := max(r.offsetOf(ctx, now.Ino), now.Size-maxUnread)
	lines, err := io.ReadAll(io.NewSectionReader(file, from, now.Size-from))
	if err != nil {
		return ""
	}
	last, me := envelope.ID(""), UserName()
	for line := range bytes.Lines(lines) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		t, findings := dialect.DecodeTask(envelope.MarkedAs(line), bytes.TrimSpace(line), envelope.Legacy)
		if !findings.Refused() && t.Requester == me {
			last = t.ID
		}
	}
	return last
}

// offsetOf returns how far our task file was read, if it is the file with this inode.
func (r *Reader) offsetOf(ctx context.Context, inode uint64) int64 {
	files, err := r.Client.Files(ctx)
	for _, f := range files {
		if err == nil && f.Path == mailbox.OwnTasks && f.Inode == inode {
			return f.Offset
		}
	}
	return 0
}
