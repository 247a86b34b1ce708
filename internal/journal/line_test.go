package journal

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Whatever a line has, reading it ends, and what is read is written and read as the
// same again.
func FuzzEventLine(f *testing.F) {
	for _, e := range []Event{
		{N: 1, At: time.Unix(1_700_000_000, 5000), Kind: "a"},
		{N: 2, Kind: "b", Task: "t", Revision: 3, Data: []byte(`{"a":[1,"]"]}`), Bodies: []Body{{Name: "x", Text: []byte("1")}, {Name: "y", Text: []byte(`"\""`)}}},
	} {
		line, bodies, err := encodeEvent(nil, &e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
		f.Add(append(line[:bodies:bodies], "}\n"...))
		f.Add(line[:len(line)-3])
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var e, again Event
		bodies, ok := parseEvent(line, &e)
		if !ok {
			return
		}
		if bodies < 0 || bodies > len(line) || bytes.IndexByte(line[:len(line)-1], '\n') >= 0 {
			return // the segment cuts lines at their ends
		}
		written, bodies, err := appendEvent(nil, &e)
		if err != nil {
			return // such as a text that is not UTF-8
		}
		if other, ok := parseEvent(written, &again); !ok || other != bodies {
			t.Fatalf("%q was read, and is written as %q, which is not", line, written)
		}
		if diff := cmp.Diff(e, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q is written as %q (-before +after):\n%s", line, written, diff)
		}
	})
}

// Whatever a segment has, reading it ends, and its events are in order.
func FuzzSegment(f *testing.F) {
	j := &Journal{}
	var whole []byte
	for n := range uint64(3) {
		end, err := j.encode([]Event{{N: 2*n + 1, Kind: "a"}, {N: 2*n + 2, Kind: "b", Bodies: []Body{{Name: "x", Text: []byte("1")}}}})
		if err != nil {
			f.Fatal(err)
		}
		if n > 0 {
			j.text = j.text[bytes.IndexByte(j.text, '\n')+1:] // the header of a new segment
		}
		whole, j.at, j.text = append(whole, j.text...), Position{N: end.N, Hash: end.Hash}, nil
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add(append(whole, whole...))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		n := uint64(0)
		if err := os.WriteFile(segmentPath(dir, 1), text, 0o600); err != nil {
			t.Fatal(err)
		}
		end, err := Replay(dir, Position{}, func(e *Event) error {
			if n++; e.N != n {
				t.Errorf("event %d is in the place of %d", e.N, n)
			}
			return nil
		})
		if end.N != n || err != nil && !isDamage(err) || bytes.Equal(text, whole) && n != 6 {
			t.Errorf("Replay of %d events = %d, %v", n, end.N, err)
		}
	})
}

// BenchmarkEncode is an append without the disk.
func BenchmarkEncode(b *testing.B) {
	j := &Journal{}
	data := []byte(`{"attempt":1,"agent":"reviewer","pid":123456,"directory":"/home/user/.local/state/mailboxd/runs/task/1.1","limits":{"wall":"30m","memory":"2GiB"},"enforced":["keeper","cgroup"],"account":"team","reserved":1.25}`)
	group := make([]Event, 16)
	for i := range group {
		group[i] = Event{N: uint64(i) + 1, At: time.Unix(1_700_000_000, 123456000), Kind: "run.started", Task: "task-00001234", Revision: 1, Data: data}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := j.encode(group); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(group)), "ns/event")
	b.ReportMetric(float64(len(j.text))/float64(len(group)), "bytes/event")
}
