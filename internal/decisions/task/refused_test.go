package task_test

import (
	"testing"

	"mailboxd/internal/decisions/task"
)

func TestAHostThatTheProgramDoesWithoutIsNotNeeded(t *testing.T) {
	o := task.Outcome{RefusedHosts: []task.RefusedHost{{Host: "a:443", For: "usage statistics"}, {Host: "b:443"}, {Host: "c:443", For: "updates"}}}
	if needed := o.NeededHosts(); len(needed) != 1 || needed[0].Host != "b:443" {
		t.Errorf("NeededHosts = %+v; want only b:443", needed)
	}
}
