package view_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/internal/cli/view"
)

func TestOnlyRandomIDsAreShortened(t *testing.T) {
	for _, tc := range []struct {
		id, before, after envelope.ID
		tasks             int64
		want              envelope.ID
	}{
		{id: "nightly-report", want: "nightly-report"},
		{id: "t1", want: "t1"},
		{id: "deadbeef", want: "deadbeef"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", want: "3f9a"},
		{id: "3f9a1c2b55554666", tasks: 1, want: "3f9a"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", tasks: 10_000, want: "3f9a1c2"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", before: "3f9a1c", want: "3f9a1c2"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", after: "3f9a1c2b-5", want: "3f9a1c2b-55"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", after: "3f9a1c2b.", want: "3f9a1c2b-5"},
		{id: "3f9a1c2b-5555-4666-8777-888899990000", after: "3f9a1c2b-5555-4666-8777-888899990000.1", want: "3f9a1c2b-5555-4666-8777-888899990000"},
		{id: "3f9a1c2b-5555-4666-8777-88889999000x", want: "3f9a1c2b-5555-4666-8777-88889999000x"},
	} {
		if got := view.ShortID(tc.id, tc.before, tc.after, tc.tasks); got != tc.want {
			t.Errorf("ShortID(%q, %q, %q, %d) = %q; want %q", tc.id, tc.before, tc.after, tc.tasks, got, tc.want)
		}
	}
}

func TestShortIDsOfManyTasksAreShortAndStayUnique(t *testing.T) {
	const tasks = 10_000
	ids := make([]string, 2*tasks)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	fast := slices.Clone(ids[:tasks])
	slices.Sort(fast)
	slices.Sort(ids)
	longest, lost := 0, 0
	for i, id := range fast {
		var before, after envelope.ID
		if i > 0 {
			before = envelope.ID(fast[i-1])
		}
		if i < len(fast)-1 {
			after = envelope.ID(fast[i+1])
		}
		short := string(view.ShortID(envelope.ID(id), before, after, tasks))
		longest = max(longest, len(short))
		at, _ := slices.BinarySearch(ids, short)
		if ids[at] != id {
			lost++
		} else if at+1 < len(ids) && ids[at+1][:len(short)] == short {
			lost++
		}
	}
	t.Logf("of %d short ids, up to %d characters long, %d are ambiguous after as many tasks again", tasks, longest, lost)
	if longest > 12 || lost > tasks/200 {
		t.Errorf("short ids of %d tasks have up to %d characters, and %d are ambiguous after as many again; want at most 12, %d", tasks, longest, lost, tasks/200)
	}
}
