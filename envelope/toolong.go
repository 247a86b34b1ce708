package envelope

import "fmt"

// TooLong is what ReadLine makes of a line that is longer than we read: a
// refused Piece, with the id that its head gives away, so that its sender can
// be told.
func TooLong(head []byte, length, limit int64) Piece {
	message := fmt.Sprintf("the line is %d bytes long, more than %d", length, limit)
	return Piece{
		Task:     Task{Raw: head, Hash: hash(head), ID: Salvage(head)},
		Findings: Findings{{Kind: InvalidEnvelope, Message: message}},
	}
}
