package access

import (
	"slices"
	"testing"
)

func TestTheOwnersOfAConnectionAreJudgedAnewUntilTheyStayTheSame(t *testing.T) {
	for _, c := range []struct {
		name   string
		looks  [][]int // the owners at each look; the last one stays
		judged []int
		why    string
	}{
		{"one process", [][]int{{1}}, []int{1}, ""},
		{"a process that starts another one", [][]int{{1}, {1, 2}, {1}}, []int{1, 1, 2, 1}, ""},
		{"a process that comes later and is refused", [][]int{{1}, {1, 13}}, []int{1, 1, 13}, "13 is refused"},
		{"owners that change each time", [][]int{{1}, {2}, {3}, {4}, {5}, {6}}, []int{1, 2, 3, 4, 5, 0}, "the owner of the connection changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var judged []int
			look := -1
			owners := func() ([]int, error) {
				look = min(look+1, len(c.looks)-1)
				return c.looks[look], nil
			}
			why, err := judgeOwners(owners, func(pid int, unknown string) (string, error) {
				judged = append(judged, pid)
				if pid == 13 {
					return "13 is refused", nil
				}
				return unknown, nil
			})
			if why != c.why || err != nil || !slices.Equal(judged, c.judged) {
				t.Errorf("judgeOwners = %q, %v after judging %v; want %q, nil, %v", why, err, judged, c.why, c.judged)
			}
		})
	}
}
