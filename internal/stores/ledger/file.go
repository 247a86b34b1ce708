package ledger

import (
	"context"
	"fmt"
)

// A File is how far one task file was read. It has the fields of
// mailbox.Cursor, so that the one converts into the other.
type File struct {
	Path       string // the key: relative to the root, "tasks/x.jsonl"
	Dev, Inode uint64
	Offset     int64
	Replay     int64
	Head, Tail []byte
}

// SetFile records f, in place of the record before of its path.
func (tx *Tx) SetFile(f File) error {
	// SQLite has the large numbers as signed ones.
	if _, err := tx.exec(fileInsert, f.Path, int64(f.Dev), int64(f.Inode), f.Offset, f.Replay, f.Head, f.Tail); err != nil {
		return fmt.Errorf("record how far %s was read: %w", f.Path, err)
	}
	return nil
}

const fileInsert = "INSERT INTO files (" + fileColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?) " +
	"ON CONFLICT (path) DO UPDATE SET dev = excluded.dev, inode = excluded.inode, offset = excluded.offset, " +
	"replay = excluded.replay, head = excluded.head, tail = excluded.tail"

// DropFiles removes the records of the files below a directory that are gone.
func (tx *Tx) DropFiles(dir string) error {
	_, err := tx.exec("DELETE FROM files WHERE inode = 0 AND path GLOB ?", dir+"/*")
	if err != nil {
		return fmt.Errorf("drop files: %w", err)
	}
	return nil
}

const fileColumns = "path, dev, inode, offset, replay, head, tail"

// Files returns every file that has a record, in order of path.
func (r *Reader) Files(ctx context.Context) ([]File, error) {
	files, err := all(ctx, r.read, scanFile, "SELECT "+fileColumns+" FROM files ORDER BY path")
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return files, nil
}

func scanFile(r row) (f File, err error) {
	var dev, inode int64
	err = r.Scan(&f.Path, &dev, &inode, &f.Offset, &f.Replay, &f.Head, &f.Tail)
	f.Dev, f.Inode = uint64(dev), uint64(inode)
	return f, err
}
