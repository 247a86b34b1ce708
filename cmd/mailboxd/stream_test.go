package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/cli/reader"
	"mailboxd/internal/operating/config"
)

// recorder prints the event stream from the first event to the end of the daemon,
// as it comes over the socket. It ignores the signals that a script sends to every
// process in the background.
func recorder() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	cfg, err := config.Load("", "")
	if err != nil {
		panic(err)
	}
	r, err := locationOf(cfg).Open(context.Background())
	if err != nil {
		panic(err)
	}
	places, err := reader.SocketPaths(r.Root, r.State.Path())
	if err != nil {
		panic(err)
	}
	daemon := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		for _, p := range places {
			if conn, err = p.Dial(ctx); err == nil {
				break
			}
		}
		return conn, err
	}}}
	response, err := daemon.Get("http://mailboxd/v1/events?after=0")
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(os.Stdout, response.Body) // fails when the daemon ends
}

// unstable has a pattern for each part of the stream that differs from run to
// run, and what a recording has in its place.
var unstable = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DAY"},
	{regexp.MustCompile(`"run_id":"[^"]+"`), `"run_id":"ID"`},
	{regexp.MustCompile(`"(took|wall)_ms":\d+`), `"${1}_ms":0`},
	{regexp.MustCompile(`"msg_([0-9a-f]{8}-[0-9a-f-]+|[0-9a-f]{24})"`), `"msg_ID"`},
	{regexp.MustCompile(`state/mailboxd/[^/"]+/`), `state/mailboxd/BOX/`},
	{regexp.MustCompile(`"uid":\d+`), `"uid":0`},
	{regexp.MustCompile(`process \d+`), "process 0"},
	{regexp.MustCompile(`"digest":"[0-9a-f]+"`), `"digest":"SUM"`},               // covers the path of the test program
	{regexp.MustCompile(`"result_sha256":"[0-9a-f]+"`), `"result_sha256":"SUM"`}, // covers times
	{regexp.MustCompile(`"rules_digest":"[0-9a-f]+"`), `"rules_digest":"SUM"`},
	{regexp.MustCompile(`(\.review",.*"hash":)"[0-9a-f]+"`), `$1"SUM"`}, // covers times
	{regexp.MustCompile(`"message":\d+`), `"message":0`},                // counts notifications, which may be sent together
}

// compareStream compares a recording of the event stream with the golden file of
// the same name: recorded FILE. The flag -update writes the golden file.
func compareStream(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: recorded file")
	}
	got := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "WORK")
	if u, err := user.Current(); err == nil {
		got = strings.ReplaceAll(got, strconv.Quote(u.Username), `"USER"`)
	}
	for _, v := range unstable {
		got = v.pattern.ReplaceAllString(got, v.replacement)
	}
	path := filepath.Join("testdata/golden", args[0])
	if *update {
		ts.Check(os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	ts.Check(err)
	if got != string(want) {
		ts.Fatalf("the event stream differs from %s; go test -run TestScripts/event_stream -update writes that (-want +got):\n%s", path, cmp.Diff(string(want), got))
	}
}
