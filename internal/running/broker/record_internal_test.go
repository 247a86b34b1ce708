package broker

import (
	"testing"
)

// Version 2026-07-28 of the protocol requires one, and newer programs refuse a list without it.
func TestTheListOfToolsSaysWhoMayKeepIt(t *testing.T) {
	all, err := (&broker{}).list(t.Context())
	if err != nil || all.CacheScope != "private" {
		t.Errorf("the list is %+v, %v; want one for the program alone", all, err)
	}
}

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

func TestAResultMaySayWhatItsCallUsed(t *testing.T) {
	for result, want := range map[string][2]int64{
		`{"_meta":{"usage":{"tokens":7,"usd_cents":2}}}`:                                {7, 2},
		`{"_meta":{"usage":{"input_tokens":7,"output_tokens":3}}}`:                      {10, 0},
		`{"_meta":{"usage":{"tokens":-7,"usd_cents":-2}}}`:                              {0, 0},
		`{"_meta":{"usage":{"tokens":9223372036854775807,"usd_cents":1}}}`:              {1 << 40, 1},
		`{"_meta":{"usage":"much"}}`:                                                    {0, 0},
		`{"_meta":{"usage":{"tokens":0.5}}}`:                                            {0, 0},
		`{"content":[{"type":"text","text":"{\"_meta\":{\"usage\":{\"tokens\":7}}}"}]}`: {0, 0},
	} {
		if tokens, cents := usage([]byte(result)); [2]int64{tokens, cents} != want {
			t.Errorf("%s used %d tokens and %d cents; want %d", result, tokens, cents, want)
		}
	}
}
