package broker

import "testing"

func TestABrokerGoesOnWithTheRecordOfAnEarlierOne(t *testing.T) {
	const limit = 3
	dir := t.TempDir()
	for _, may := range []bool{true, true, true, false} {
		var r record
		if err := r.open(dir); err != nil {
			t.Fatal(err)
		}
		if r.count(limit) != may {
			t.Errorf("with %d calls before, another one may be made: %t; want %t", r.calls-1, !may, may)
		}
		for _, what := range []string{"ask", "sent", "called"} {
			if err := r.line(what, struct{}{}); err != nil {
				t.Error(err)
			}
		}
		r.close()
	}
}
