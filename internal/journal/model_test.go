package journal_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mailboxd/internal/fault"
	"mailboxd/internal/journal"
)

// A model is a journal with a disk that fails at random, and what was acknowledged.
type model struct {
	t     *testing.T
	dice  *rand.Rand
	dir   string
	j     *journal.Journal
	retry []journal.Event // the group whose append failed
}

// Whatever fails, and whenever the process is killed or the power is cut, what was
// acknowledged is there and the chain holds.
func TestARandomLifeLosesNothing(t *testing.T) {
	for seed := range uint64(40) {
		m := &model{t: t, dice: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "journal")}
		m.j = open(t, m.dir, journal.Options{SegmentSize: 1500})
		for range 30 {
			m.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		closeJournal(t, m.j)
	}
}

func (m *model) step() {
	switch m.dice.IntN(8) {
	case 0:
		m.kill()
	case 1:
		if number := 1 + m.dice.IntN(max(m.j.Head().Segment, 1)); number < m.j.Head().Segment {
			if _, err := m.j.Purge(number, func(*journal.Event) bool { return m.dice.IntN(2) == 0 }); err != nil {
				m.t.Error(err)
			}
		}
	case 2, 3:
		m.append(fault.FailReads(m.fail))
	default:
		m.append(func() {})
	}
	report, err := journal.Verify(context.Background(), m.dir, m.j.Head())
	if err != nil || report.End.N < m.j.Head().N {
		m.t.Errorf("Verify = %+v, %v; want at least event %d", report, err, m.j.Head().N)
	}
}

// append appends the next group, or the one that failed.
func (m *model) append(heal func()) {
	group := m.retry
	if group == nil {
		group = newGroup(m.j, 1+m.dice.IntN(4))
	}
	_, err := m.j.Append(group)
	heal()
	if m.retry = nil; err != nil {
		m.retry = group
	}
}

// fail has half of all steps fail. A write that fails leaves bytes in the last
// segment.
func (m *model) fail(step string) error {
	if m.dice.IntN(2) == 0 {
		return nil
	}
	if paths, _ := filepath.Glob(filepath.Join(m.dir, "*.jsonl")); step == "write journal segment" && len(paths) > 0 {
		file, err := os.OpenFile(paths[len(paths)-1], os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = file.WriteString("{\"n\":1,\"at\n{}\x00\x00"[:m.dice.IntN(15)])
			_ = file.Close()
		}
		if err != nil {
			m.t.Error(err)
		}
	}
	return syscall.EIO
}

// kill has another process go on with what is on the disk: everything that was
// acknowledged, and any part of the rest.
func (m *model) kill() {
	acknowledged := m.j.Head()
	m.dir = copyDir(m.t, m.dir)
	closeJournal(m.t, m.j)
	if last := acknowledged.Segment + m.dice.IntN(2); last > 0 {
		if info, err := os.Stat(segment(m.dir, last)); err == nil {
			durable := int64(0)
			if last == acknowledged.Segment {
				durable = acknowledged.Offset
			}
			if err := os.Truncate(segment(m.dir, last), durable+m.dice.Int64N(info.Size()-durable+1)); err != nil {
				m.t.Error(err)
			}
		}
	}
	m.j = open(m.t, m.dir, journal.Options{SegmentSize: 1500})
	m.retry = nil
	if end := m.j.Head(); end.N < acknowledged.N {
		m.t.Errorf("the journal ends with event %d; %d was acknowledged", end.N, acknowledged.N)
	}
	wantEvents(m.t, m.dir, m.j.Head().N)
}
