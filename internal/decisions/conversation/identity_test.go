package conversation_test

import (
	"testing"

	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

func TestATaskEndsWithTheLastOfItsEnds(t *testing.T) {
	row := task.Task{ID: "t1", Revision: 1, State: task.Done}
	all := []task.Event{
		{Seq: 1, Kind: task.KindTaskAccepted, Revision: 1}, {Seq: 2, Kind: task.KindTaskFinished, Revision: 1},
		{Seq: 3, Kind: task.KindApprovalApproved, Revision: 1}, {Seq: 4, Kind: task.KindTaskFinished, Revision: 2}, {Seq: 5, Kind: task.KindTaskNoticed, Revision: 1},
	}
	if end, _ := conversation.EndOf(row, all); end.Seq != 3 {
		t.Errorf("EndOf = %+v; want the approval of the answer", end)
	}
	row.State = task.Review
	if end, _ := conversation.EndOf(row, all); end.Seq != 0 {
		t.Errorf("EndOf = %+v; want none of a task that is not done", end)
	}
}
