package view

import "testing"

func TestAnInputIsShownInTheSameWordsHoweverItIsEncoded(t *testing.T) {
	for _, raw := range []string{`{"a": "\u00fc\u202e", "b": [1, 2]}`, `{"a":"ü\u202e","b":[1,2]}`, "{\"a\":\"ü\u202e\",\n\"b\":[1,2]}"} {
		if got := inputOf([]byte(raw)); got != `{"a":"ü\u202e","b":[1,2]}` {
			t.Errorf("inputOf(%s) = %s; want the shortest encoding, with what controls text as an escape", raw, got)
		}
	}
}
