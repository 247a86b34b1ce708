package view

import (
	"bytes"
	"io"
)

// A SetupLog marks what the setup of a worktree printed, each line by "setup: ". It may not be used
// concurrently.
type SetupLog struct {
	to     io.Writer
	inLine bool
}

// NewSetupLog returns a SetupLog that writes to another writer.
func NewSetupLog(to io.Writer) *SetupLog { return &SetupLog{to: to} }

// Write prints an output, which may begin and end inside a line.
func (l *SetupLog) Write(output []byte) (int, error) {
	var marked []byte
	for line := range bytes.Lines(output) {
		if !l.inLine {
			marked = append(marked, "setup: "...)
		}
		marked = append(marked, line...)
		l.inLine = line[len(line)-1] != '\n'
	}
	if _, err := l.to.Write(marked); err != nil {
		return 0, err
	}
	return len(output), nil
}
