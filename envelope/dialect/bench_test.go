package dialect_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// BenchmarkReadALineOfAINL reads a line of the mailbox's own dialect: it pays nothing for the
// others.
func BenchmarkReadALineOfAINL(b *testing.B) { readLine(b, ainlLine) }

// BenchmarkReadALineOfClutch reads a task.request with nothing left out.
func BenchmarkReadALineOfClutch(b *testing.B) { readLine(b, clutchLine) }

func readLine(b *testing.B, line string) {
	room := make([]dialect.Piece, 0, 1)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if got := dialect.AppendRead(room[:0], []byte(line), envelope.Strict); len(got) != 1 || got[0].Findings.Refused() {
			b.Fatal(got)
		}
	}
}
