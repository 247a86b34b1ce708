package ledgerimport

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

// The redo log has two files, which were written from their beginning in turns. It has what
// groups have changed, a frame for each, until the tables had that.

var redoEnds = [2]string{"-redo1", "-redo2"}

// An extent is how far the tables have what the redo log has.
type extent struct {
	applied uint64 // the number of the last frame that they have
	live    bool   // there may be later ones, so both files have to be there
}

func readExtent(r *sql.Row) (e extent, err error) {
	var applied int64
	err = r.Scan(&applied, &e.live)
	e.applied = uint64(applied)
	return e, err
}

// takeUp brings to the tables what only the redo log has.
func takeUp(tx *sql.Tx, path string) error {
	have, err := readExtent(tx.QueryRow("SELECT applied, live FROM redo"))
	if err != nil {
		return err
	}
	frames, err := readFrames(path, have)
	for _, rows := range frames {
		if err == nil {
			err = eachRow(rows, func(of table, values []any) error {
				_, err := tx.Exec(statements[of], values...)
				return err
			})
		}
	}
	if err == nil {
		_, err = tx.Exec("UPDATE redo SET applied = ?, live = 0", int64(have.applied)+int64(len(frames)))
	}
	return err
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
			return nil, fmt.Errorf("%w: its redo log %s is missing", ErrUnreadable, filepath.Base(path)+end)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if found[i], first[i], err = framesOf(text, have.applied); err != nil {
			return nil, fmt.Errorf("%w: its redo log %s has %w", ErrUnreadable, filepath.Base(path)+end, err)
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
			return nil, fmt.Errorf("%w: its redo log goes on with frame %d, and it ends with %d", ErrUnreadable, first[i], next-1)
		}
		frames = append(frames, found[i]...)
		next += uint64(len(found[i]))
	}
	return frames, nil
}

// framesOf returns the rows of the frames that a file begins with, from the first
// one that is not applied. Behind them are frames of earlier turns, which are all
// applied; a later frame there is an error.
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
	const block = 4096
	for _, at := range [2]int{(at + block - 1) / block * block, at} {
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

// A frame is the length of the rows, a sum over the rest, its number, and the rows.
const (
	frameHead = 16 // 4 bytes length, 4 sum, 8 number
	maxFrame  = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cutFrame returns the first frame of b, and what follows it. A frame that is not whole is
// none.
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

// A table is a kind of row of the redo log.
type table byte

// statements write the rows of each table.
var statements = [...]string{
	insert("tasks", "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, "+
		"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"),
	insert("requests", "task, body"),
	insert("results", "task, body") + " ON CONFLICT (task) DO UPDATE SET body = excluded.body",
	insert("runs", "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, "+
		"reserved_tokens, reserved_cents, lender, lender_attempt, settled"),
	insert("events", "time, kind, data, task"),
	"UPDATE tasks SET state = ?, attempt = ?, reasons = ?, until = ?, agent = ?, status = ?, kind = ?, " +
		"finished = ?, result_sum = ?, put = ?, delivered = ?, replaces = ? WHERE seq = ?",
	"UPDATE runs SET pid = ?, pid_start = ?, boot = ?, started = ?, finished = ?, exit_code = ?, signal = ?, cause = ?, " +
		"settled = ? WHERE task = ? AND attempt = ?",
	insert("files", "path, dev, inode, offset, replay, head, tail") + " ON CONFLICT (path) DO UPDATE SET dev = excluded.dev, inode = excluded.inode, " +
		"offset = excluded.offset, replay = excluded.replay, head = excluded.head, tail = excluded.tail",
	insert("dead_letters", "line"),
}

func insert(into, columns string) string {
	return "INSERT INTO " + into + " (" + columns + ") VALUES (" + strings.Repeat("?, ", strings.Count(columns, ",")) + "?)"
}

// errFrame says that a frame is whole and makes no sense.
var errFrame = fmt.Errorf("%w: its redo log has a frame that no version wrote", ErrUnreadable)

// eachRow yields the rows of a frame.
func eachRow(b []byte, yield func(table, []any) error) error {
	for len(b) > 0 {
		if len(b) < 2 || int(b[0]) >= len(statements) || int(b[1]) != strings.Count(statements[b[0]], "?") {
			return errFrame
		}
		of, values := table(b[0]), make([]any, b[1])
		b = b[2:]
		for i := range values {
			var ok bool
			if values[i], b, ok = cutValue(b); !ok {
				return errFrame
			}
		}
		if err := yield(of, values); err != nil {
			return err
		}
	}
	return nil
}

// cutValue returns the first value of b: a byte for its kind, and a number or a length with
// so many bytes.
func cutValue(b []byte) (v any, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	kind, b := b[0], b[1:]
	switch kind {
	case 0:
		return nil, b, true
	case 1:
		n, size := binary.Varint(b)
		return n, b[max(size, 0):], size > 0
	case 2, 3:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, nil, false
		}
		text, rest := b[size:][:n:n], b[size:][n:]
		if kind == 2 {
			return string(text), rest, true
		}
		return text, rest, true
	}
	return nil, nil, false
}
