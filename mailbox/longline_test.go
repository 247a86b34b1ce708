package mailbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

func TestALongLineNamesItsTaskHoweverItIsRead(t *testing.T) { // row 10
	text := `{"input":"` + strings.Repeat("x", 3000) + `","task_id":"a"}`
	sum := sha256.Sum256([]byte(text))
	for _, ending := range []string{"\n", "\r\n"} {
		for _, batch := range []int64{1, 100, 1 << 20} {
			box := open(t)
			path := box.TasksDir() + "/x.jsonl"
			write(t, path, "\uFEFF"+text[:1000])
			opts := mailbox.TailOptions{MaxLine: 1024, BatchBytes: batch}
			r := tail(t, box, opts)
			r.want() // its writer is still writing
			add(t, path, text[1000:2000])
			r.want()
			r = r.again(box, opts)
			add(t, path, text[2000:]+ending+text+ending)
			lines := r.rest()
			if len(lines) != 2 {
				t.Fatalf("got %d lines by %d bytes; want 2", len(lines), batch)
			}
			for _, line := range lines {
				if string(line.Outline) != `{"task_id":"a"}` || line.SHA256 != hex.EncodeToString(sum[:]) || line.Length != int64(len(text)) {
					t.Errorf("by %d bytes, a line of %d has the outline %s and the sum %s", batch, line.Length, line.Outline, line.SHA256)
				}
			}
			r.again(box, opts).want()
		}
	}
}

func TestALineLongerThanMostStreamedHasNoOutline(t *testing.T) { // row 10
	box := open(t)
	text := `{"task_id":"a","x":"` + strings.Repeat("x", envelope.MostStreamed) + `"}`
	write(t, box.TasksDir()+"/x.jsonl", text+"\n")
	lines := tail(t, box, mailbox.TailOptions{}).rest()
	if len(lines) != 1 || !lines[0].TooLong || lines[0].Outline != nil || lines[0].SHA256 != "" {
		t.Errorf("got %d lines, the first with outline %s; want one without", len(lines), lines[0].Outline)
	}
}
