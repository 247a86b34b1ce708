package ledger

import (
	"context"
	"fmt"
)

// A DeadLetter is a line that was not appended to a file of dead letters yet.
type DeadLetter struct {
	Seq  int64  // the order in which they came
	Line []byte // without its end
}

// AddDeadLetter keeps a line for a file of dead letters until DropDeadLetters.
func (tx *Tx) AddDeadLetter(line []byte) error {
	if line == nil {
		line = []byte{} // a column for bytes, not for NULL
	}
	if _, err := tx.exec("INSERT INTO dead_letters (line) VALUES (?)", line); err != nil {
		return fmt.Errorf("keep dead letter: %w", err)
	}
	return nil
}

// mostDeadLetters is how many dead letters are read at once.
const mostDeadLetters = 1024

// DeadLetters returns the oldest lines that are still to be appended: at most so many
// bytes, but at least one line if there is one.
func (r *Reader) DeadLetters(ctx context.Context, bytes int) (letters []DeadLetter, err error) {
	defer wrap(&err, "list dead letters")
	sizes, err := all(ctx, r.read, scanSize, "SELECT seq, length(line) FROM dead_letters ORDER BY seq LIMIT ?", mostDeadLetters)
	if err != nil || len(sizes) == 0 {
		return nil, err
	}
	last := 0
	for total := sizes[0].bytes; last+1 < len(sizes) && total+sizes[last+1].bytes <= bytes; last++ {
		total += sizes[last+1].bytes
	}
	return all(ctx, r.read, scanDeadLetter, "SELECT seq, line FROM dead_letters WHERE seq <= ? ORDER BY seq", sizes[last].seq)
}

// DropDeadLetters removes the lines up to a Seq: they are in a file.
func (tx *Tx) DropDeadLetters(upTo int64) error {
	if _, err := tx.exec("DELETE FROM dead_letters WHERE seq <= ?", upTo); err != nil {
		return fmt.Errorf("drop dead letters: %w", err)
	}
	return nil
}

// A letterSize is how many bytes a dead letter has.
type letterSize struct {
	seq   int64
	bytes int
}

func scanSize(r row) (s letterSize, err error) {
	err = r.Scan(&s.seq, &s.bytes)
	return s, err
}

func scanDeadLetter(r row) (d DeadLetter, err error) {
	err = r.Scan(&d.Seq, &d.Line)
	return d, err
}
