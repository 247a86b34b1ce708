package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// act plays an agent that looks at its conversation: it prints the lines of the
// first cue, in the file of $PARTS that is its last argument, whose words the last message has.
//
//	? words of the last message
//	{"what": "it says then"}
func act() {
	conversation, err := os.ReadFile(os.Getenv("MAILBOX_CONVERSATION_FILE"))
	if err != nil {
		panic(err)
	}
	lines := bytes.Split(bytes.TrimSpace(conversation), []byte("\n"))
	last := string(lines[len(lines)-1])
	part, err := os.ReadFile(filepath.Join(os.Getenv("PARTS"), os.Args[len(os.Args)-1]))
	if err != nil {
		panic(err)
	}
	speaking, said := false, false
	for line := range strings.Lines(string(part)) {
		cue, isCue := strings.CutPrefix(strings.TrimSpace(line), "? ")
		switch {
		case isCue && said:
			return
		case isCue:
			speaking = strings.Contains(last, cue)
		case speaking:
			fmt.Print(line)
			said = true
		}
	}
	if !said {
		fmt.Fprintln(os.Stderr, "no part for", last)
		os.Exit(4)
	}
}
