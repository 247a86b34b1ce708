package agent_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
)

// reporting says something on its progress file and is done.
func reporting(args []string) {
	fmt.Println(`{"summary":"done"}`)
	if err := os.WriteFile(os.Getenv("MAILBOX_PROGRESS_FILE"), []byte(args[0]), 0o600); err != nil {
		panic(err)
	}
}

func TestWhatAnAgentSaysOfItsProgressIsPassedOn(t *testing.T) {
	for _, c := range []struct {
		dialect envelope.Dialect
		lines   string
		want    []string
	}{
		{envelope.AINL, `{"pct":40,"note":"reading"}`, []string{`reading {"note":"reading","pct":40}`}},
		{envelope.AINL, `{"note":"reading","cost_used":{"tokens":1,"usd_cents":0}}` + "\n", []string{`reading {"note":"reading"}`}},
		{envelope.AINL, `{"pct":10}` + "\n" + `{"pct":20}` + "\nalive\n", []string{` {"pct":20}`}},
		{envelope.AINL, `{"pct":140}` + "\n" + `{"note":7}` + "\n" + `{"step":"a"}` + "\nalive\n", nil},
		{envelope.CLowl, `{"clowl":"0.2","p":"PROG","body":{"t":"check","d":{"pct":70}}}` + "\n", []string{` {"pct":70}`}},
		{envelope.CLowl, `{"clowl":"0.2","p":"DONE","body":{"t":"check","d":{"pct":70}}}` + "\n", nil},
	} {
		var got []string
		j := asked(t, asksCLowl)
		j.Meter = nil
		j.Report = func(m envelope.Message) {
			if m.Act != envelope.Reports || m.From != "tester" || !slices.Equal(m.To, []string{"planner"}) || m.Task != "m1" || m.Time.IsZero() {
				t.Errorf("%s is reported as %+v", c.lines, m)
			}
			got = append(got, fmt.Sprint(m.Text, " ", m.Data))
		}
		b := playing(t, "report", c.lines)
		b.Dialect = c.dialect
		bound(t, b).Run(t.Context(), j, nil)
		if strings.Join(got, ";") != strings.Join(c.want, ";") {
			t.Errorf("%s is reported as %q, want %q", c.lines, got, c.want)
		}
	}
}
