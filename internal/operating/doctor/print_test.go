package doctor_test

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/doctor"
)

func TestFindingsFitTheScreenAndHangBelowTheirNames(t *testing.T) {
	findings := []doctor.Finding{
		{Check: "root", State: doctor.OK, Finding: "/home/ada/.local/state/ainl_agents, which only you may write to"},
		{Check: "agent", Subject: "openclaw.monitor", State: doctor.Bad, Finding: "its command is not there, and nobody else has a program of that name", Hint: "correct agents[].exec.command in the configuration, then: mailboxd reload"},
	}
	for _, tc := range []struct {
		columns int
		want    string
	}{
		{0, "" +
			"ok    root                    /home/ada/.local/state/ainl_agents, which only you may write to\n" +
			"bad   agent openclaw.monitor  its command is not there, and nobody else has a program of that name\n" +
			"                              -> correct agents[].exec.command in the configuration, then: mailboxd reload\n"},
		{80, "" +
			"ok    root                    /home/ada/.local/state/ainl_agents, which only you\n" +
			"                              may write to\n" +
			"bad   agent openclaw.monitor  its command is not there, and nobody else has a\n" +
			"                              program of that name\n" +
			"                              -> correct agents[].exec.command in the\n" +
			"                                 configuration, then: mailboxd reload\n"},
		{50, "" +
			"ok    root\n" +
			"      /home/ada/.local/state/ainl_agents, which\n" +
			"      only you may write to\n" +
			"bad   agent openclaw.monitor\n" +
			"      its command is not there, and nobody else\n" +
			"      has a program of that name\n" +
			"      -> correct agents[].exec.command in the\n" +
			"         configuration, then: mailboxd reload\n"},
	} {
		var out bytes.Buffer
		if err := doctor.Print(term.Screen{Writer: &out, Columns: tc.columns}, findings, false); err != nil {
			t.Fatal(err)
		}
		got, _, _ := strings.Cut(out.String(), "\n\n")
		if got+"\n" != tc.want {
			t.Errorf("on %d columns:\n%s\nwant\n%s", tc.columns, got, tc.want)
		}
	}
}
