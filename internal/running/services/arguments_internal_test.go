package services

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestArgumentsAreTextsOrThePayload(t *testing.T) {
	const asked = `{"task_id":"t1","description":"say \"hi\"","input":{"payload":{"a":[1,{"b":null}]}}}`
	got, err := Fill(jsontext.Value(`{"q":["{{.Description}}",3],"all":"{{.Payload}}","text":"p: {{.Payload}}"}`), []byte(asked))
	if want := `map[all:map[a:[1 map[b:<nil>]]] q:[say "hi" 3] text:p: {"a":[1,{"b":null}]}]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("arguments = %v, %v; want %s", got, err, want)
	}
	for bad, words := range map[string]string{`{"q":"{{.Nothing}}"}`: "known: TaskID", `{"q":"{{"}`: "q: ", `[1]`: "is not an object"} {
		if err := CheckArguments(jsontext.Value(bad)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("CheckArguments(%s) = %v; want %q", bad, err, words)
		}
	}
}
