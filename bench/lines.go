package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// lineSize is the length of a task line, with its newline.
const lineSize = 1024

// id returns the id of a task.
func id(n int) string { return fmt.Sprintf("task-%07d", n) }

// line returns a task line, a valid envelope.
func line(n int) []byte {
	const form = `{"schema_version":"1.0","task_id":%q,"requester_id":"producer","target_agent":"bench","target_role":"executor",` +
		`"task_type":"bench","description":"a task of the bench","input":{"refs":[],"payload":{"text":"%s"}}}` + "\n"
	short := len(fmt.Sprintf(form, id(n), ""))
	return fmt.Appendf(nil, form, id(n), strings.Repeat("x", lineSize-short))
}

// appendLines appends task lines as a requester does, each with one write.
func appendLines(path string, from, to int) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for n := from; n < to; n++ {
		if _, err := f.Write(line(n)); err != nil {
			return err
		}
	}
	return nil
}

// layBacklog writes a file of task lines, many in each write.
func layBacklog(path string, count int) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var text bytes.Buffer
	for n := range count {
		text.Write(line(n))
		if text.Len() < 1<<20 && n+1 < count {
			continue
		}
		if _, err := text.WriteTo(f); err != nil {
			return err
		}
	}
	return f.Sync()
}

// writeIDs writes a file of task ids, for programs that don't read envelopes.
func writeIDs(path string, count int) error {
	var text bytes.Buffer
	for n := range count {
		fmt.Fprintln(&text, id(n))
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}
