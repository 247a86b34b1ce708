package store

import (
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/task"
)

func TestASharedFaultEndsWithTheTaskThatReportedItLast(t *testing.T) {
	f := NewFaultLog(zerolog.Nop())
	first, second := task.Task{Seq: 1, ID: "a"}, task.Task{Seq: 2, ID: "b"}
	f.Report(Delivering, first, syscall.ENOSPC)
	f.Report(Delivering, second, syscall.ENOSPC)
	if f.ClearFor(Delivering, first); len(f.Shared()) != 1 {
		t.Errorf("faults = %v; want the one that another task has reported since", f.Shared())
	}
	if f.ClearFor(Delivering, second); len(f.Shared()) != 0 {
		t.Errorf("faults = %v; want none", f.Shared())
	}
}
