package ledger

import (
	"bytes"
	"database/sql/driver"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// someLayer has a row of each kind.
func someLayer() *memtable {
	c := newLayer()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	c.setTask(&taskChange{Task: task.Task{Seq: 1, ID: "new", Revision: 1, Latest: true, Received: at}, added: true, raw: []byte("{}"), result: []byte("[]")})
	c.setTask(&taskChange{Task: task.Task{Seq: 2, ID: "old", State: task.Done, Status: envelope.OK, Finished: at}})
	c.setTask(&taskChange{Task: task.Task{Seq: 3, ID: "urgent", Revision: 1, Latest: true, Received: at, Priority: 7}, added: true, raw: []byte("{}")})
	c.setRun(&runChange{record: record{Run: task.Run{Task: 1, Attempt: 1, Intent: at}, terms: "{}"}, added: true})
	c.setRun(&runChange{record: record{Run: task.Run{Task: 2, Attempt: 3, ExitCode: -1, Settled: true}}})
	c.log(task.Event{Time: at, Kind: "task.accepted", Of: 1, Data: []byte("{}")})
	c.log(task.Event{Time: at, Kind: "agent.paused", Data: []byte("{}")})
	c.files["tasks/a.jsonl"] = File{Path: "tasks/a.jsonl", Inode: 1 << 63, Offset: 7}
	return c
}

func TestAFrameSaysWhatItsLayerHas(t *testing.T) {
	type row struct {
		Of     table
		Values []driver.Value
	}
	var want, got []row
	keep := func(to *[]row) func(change) error {
		return func(r change) error {
			kept := row{Of: r.of}
			for _, v := range r.values {
				kept.Values = append(kept.Values, v.boxed())
			}
			*to = append(*to, kept)
			return nil
		}
	}
	if err := someLayer().each(nil, keep(&want)); err != nil {
		t.Fatal(err)
	}
	number, rows, rest, ok := cutFrame(append(appendFrame(nil, 42, someLayer(), nil), "what was there before"...))
	if !ok || number != 42 || string(rest) != "what was there before" {
		t.Fatalf("cutFrame() = %d, %q, %v; want frame 42", number, rest, ok)
	}
	if err := eachRow(rows, keep(&got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// A frame begins a block, and those of versions that wrote no blocks follow each
// other at once.
func TestFramesAreReadInBlocksAndWithout(t *testing.T) {
	frame := func(number uint64) []byte { return appendFrame(nil, number, someLayer(), nil) }
	block := func(number uint64) []byte {
		f := frame(number)
		return append(f, make([]byte, wholeBlocks(len(f))-len(f))...)
	}
	left := bytes.Repeat([]byte("left from before"), 1000)
	for what, text := range map[string][]byte{
		"in blocks":                      slices.Concat(block(3), block(4), block(5), left),
		"at once":                        slices.Concat(frame(3), frame(4), frame(5), left),
		"behind them one of an old turn": slices.Concat(block(3), block(4), block(5), block(2)),
		"and its end torn":               slices.Concat(block(3), block(4), frame(5)),
	} {
		if frames, first, err := framesOf(text, 3); err != nil || len(frames) != 2 || first != 4 {
			t.Errorf("%s: %d frames from %d, %v; want 2 from 4", what, len(frames), first, err)
		}
	}
}

// Whatever lies in the redo log, reading it ends, and what it has is some whole
// frames.
func FuzzFrames(f *testing.F) {
	frames := appendFrame(appendFrame(nil, 8, someLayer(), nil), 9, someLayer(), nil)
	f.Add(frames)
	f.Add(frames[:len(frames)-1])
	f.Add(append(appendFrame(nil, 10, newLayer(), nil), frames...))
	f.Add(append(append(appendFrame(nil, 10, newLayer(), nil), make([]byte, block)...)[:block], appendFrame(nil, 11, someLayer(), nil)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, _, _ := framesOf(text, 7)
		for _, rows := range found {
			if !bytes.Contains(text, rows) {
				t.Error("a frame is not what the log has")
			}
			_ = eachRow(rows, func(r change) error {
				if len(r.values) != widths[r.of] {
					t.Errorf("a row of table %d has %d values", r.of, len(r.values))
				}
				return nil
			})
		}
		_ = eachRow(text, func(change) error { return nil })
	})
}
