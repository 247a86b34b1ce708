package term

import (
	"bytes"
	"testing"
)

func TestLogLinesGoAboveTheLastLine(t *testing.T) {
	var out bytes.Buffer
	f := &Footer{Screen: Screen{Writer: &out}}
	f.Show("1 running")
	f.Show("1 running")
	f.Write([]byte("accepted\n"))
	f.Show("")
	f.Write([]byte("stopped\n"))
	want := clearLine + "1 running" + clearLine + "accepted\n1 running" + clearLine + "stopped\n"
	if out.String() != want {
		t.Errorf("the terminal got %q; want %q", out.String(), want)
	}
}
