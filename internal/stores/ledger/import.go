package ledger

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

// Schema versions 6 to 13 had a redo log: what groups had changed, frame after frame, in two files
// that were written by turns. The tables got it later, and said up to which frame they had it. This
// file reads such a log.

// redoEnds are the ends of the names of its files, beside the ledger.
var redoEnds = [2]string{"-redo1", "-redo2"}

// A frame has a head, and then the rows that a group wrote.
const (
	frameHead = 16 // 4 bytes length of the rows, 4 sum of the rest, 8 number
	maxFrame  = 1 << 30
	block     = 4096 // a frame begins in a new one
)

// redoStatements bring a row of each kind to the tables. Their order is that of the numbers in the log.
var redoStatements = [...]string{
	insertOf("tasks", redoTaskColumns),
	insertOf("requests", "task, body"),
	resultInsert,
	insertOf("runs", redoRunColumns),
	insertOf("events", "time, kind, data, task"),
	"UPDATE tasks SET state = ?, attempt = ?, reasons = ?, until = ?, agent = ?, status = ?, kind = ?, finished = ?, " +
		"result_sum = ?, put = ?, delivered = ?, replaces = ? WHERE seq = ?",
	"UPDATE runs SET pid = ?, pid_start = ?, boot = ?, started = ?, finished = ?, exit_code = ?, signal = ?, " +
		"cause = ?, settled = ? WHERE task = ? AND attempt = ?",
	fileInsert,
	insertOf("dead_letters", "line"),
	insertOf("tasks", redoTaskColumns+", priority"),
}

const redoTaskColumns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
	"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"

const redoRunColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, " +
	"tokens, usd_cents, terms, reserved_tokens, reserved_cents, lender, lender_attempt, settled"

func insertOf(table, columns string) string {
	return "INSERT INTO " + table + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ")"
}

// An extent is how far the tables have what the redo log has.
type extent struct {
	applied uint64 // the number of the last frame that they have
	live    bool   // there may be later ones, so both files have to be there
}

func readExtent(ctx context.Context, q querier, version int) (e extent, err error) {
	query := "SELECT applied, live FROM redo"
	if version < 8 {
		query = "SELECT applied, 0 FROM redo"
	}
	var applied int64
	err = q.QueryRowContext(ctx, query).Scan(&applied, &e.live)
	e.applied = uint64(applied)
	return e, err
}

// importRedo brings to the tables of schema version 13 what the redo log has and they don't, in the
// transaction that is open.
func importRedo(ctx context.Context, conn *sql.Conn, path string) error {
	have, err := readExtent(ctx, conn, 13)
	if err != nil {
		return err
	}
	frames, err := readFrames(path, have)
	if err != nil {
		return err
	}
	write := newStatements(conn.PrepareContext)
	for _, rows := range frames {
		err = errors.Join(err, eachRow(rows, func(kind int, values []any) error {
			_, err := write.exec(redoStatements[kind], values...)
			return err
		}))
	}
	return errors.Join(err, write.close())
}

// readFrames returns what both files have and the tables do not, in order. A file that
// has to be there and is missing makes the ledger unreadable. So does a frame that is
// not whole when a later one is: it was durable before that one was written.
func readFrames(path string, have extent) (frames [][]byte, err error) {
	var found [2][][]byte
	var first [2]uint64
	for i, end := range redoEnds {
		text, err := os.ReadFile(path + end)
		switch {
		case errors.Is(err, os.ErrNotExist) && have.live:
			return nil, fmt.Errorf("%w: its redo log %s is missing", errUnreadable, filepath.Base(path)+end)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if found[i], first[i], err = framesOf(text, have.applied); err != nil {
			return nil, fmt.Errorf("%w: its redo log %s has %w", errUnreadable, filepath.Base(path)+end, err)
		}
	}
	older := 0
	if first[1] < first[0] {
		older = 1
	}
	next := have.applied + 1
	for _, i := range [2]int{older, 1 - older} {
		if len(found[i]) == 0 {
			continue
		}
		if first[i] != next {
			return nil, fmt.Errorf("%w: its redo log goes on with frame %d, and it ends with %d", errUnreadable, first[i], next-1)
		}
		frames = append(frames, found[i]...)
		next += uint64(len(found[i]))
	}
	return frames, nil
}

// framesOf returns the rows of the frames that a file begins with, from the first
// one that is not applied. Behind them is what was left of earlier turns, of which
// all is applied; a later frame there is an error.
func framesOf(text []byte, applied uint64) (frames [][]byte, first uint64, err error) {
	var last uint64
	for at := 0; ; {
		number, rows, end, ok := nextFrame(text, at, last)
		if !ok {
			return frames, first, noLaterFrame(text[at:], max(last, applied))
		}
		if number > applied {
			if len(frames) == 0 {
				first = number
			}
			frames = append(frames, rows)
		}
		last, at = number, end
	}
}

// nextFrame returns the frame that follows another one which ended somewhere: in the
// next block, or right there, where versions that wrote no blocks have it.
func nextFrame(text []byte, at int, last uint64) (number uint64, rows []byte, end int, ok bool) {
	for _, at := range [2]int{(at + block - 1) &^ (block - 1), at} {
		number, rows, rest, ok := cutFrame(text[min(at, len(text)):])
		if ok && (last == 0 || number == last+1) {
			return number, rows, len(text) - len(rest), true
		}
	}
	return 0, nil, 0, false
}

// noLaterFrame returns an error if a frame that was written after the last one is
// anywhere in a text.
func noLaterFrame(text []byte, last uint64) error {
	for at := range max(0, len(text)-frameHead+1) {
		number := binary.LittleEndian.Uint64(text[at+8:])
		if number <= last || number-last > uint64(len(text)) { // so many frames are not in it
			continue
		}
		if _, _, _, ok := cutFrame(text[at:]); ok {
			return fmt.Errorf("frame %d, and the one after %d is damaged", number, last)
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cutFrame returns the first frame of b, and what follows it. One that is not
// whole, as after a power cut, is none.
func cutFrame(b []byte) (number uint64, rows, rest []byte, ok bool) {
	if len(b) < frameHead {
		return 0, nil, nil, false
	}
	length := binary.LittleEndian.Uint32(b)
	if length > maxFrame || int64(len(b)) < frameHead+int64(length) {
		return 0, nil, nil, false
	}
	frame, rest := b[:frameHead+length], b[frameHead+length:]
	if crc32.Checksum(frame[8:], castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
		return 0, nil, nil, false
	}
	return binary.LittleEndian.Uint64(frame[8:]), frame[frameHead:], rest, true
}

// errFrame says that a frame is whole and makes no sense.
var errFrame = fmt.Errorf("%w: a frame of its redo log is none of its version's", errUnreadable)

// eachRow yields the rows of a frame: what kind, and its values.
func eachRow(b []byte, yield func(kind int, values []any) error) error {
	for len(b) > 0 {
		if len(b) < 2 || int(b[0]) >= len(redoStatements) || int(b[1]) != strings.Count(redoStatements[b[0]], "?") {
			return errFrame
		}
		kind, values := int(b[0]), make([]any, b[1])
		b = b[2:]
		for i := range values {
			var err error
			if values[i], b, err = cutValue(b); err != nil {
				return err
			}
		}
		if err := yield(kind, values); err != nil {
			return err
		}
	}
	return nil
}

// cutValue returns the first value of b, and what follows it.
func cutValue(b []byte) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errFrame
	}
	kind, b := b[0], b[1:]
	switch kind {
	case 0:
		return nil, b, nil
	case 1:
		n, size := binary.Varint(b)
		if size <= 0 {
			return nil, nil, errFrame
		}
		return n, b[size:], nil
	case 2, 3: // a text, and a blob
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, nil, errFrame
		}
		text := b[size:][:n]
		if kind == 2 {
			return string(text), b[size:][n:], nil
		}
		return text, b[size:][n:], nil
	}
	return nil, nil, errFrame
}

// removeRedo removes the files of a redo log of which the tables have everything.
func removeRedo(path string) error {
	removed := false
	for _, end := range redoEnds {
		switch err := os.Remove(path + end); {
		case err == nil:
			removed = true
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	if !removed {
		return nil
	}
	return syncDir(filepath.Dir(path))
}
