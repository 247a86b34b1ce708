package runners_test

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"mailboxd/internal/testtools/slowtest"
)

// rounds is how often a time is measured, and broken what it takes if it depends on reports, which come each 10 seconds.
const (
	rounds = 7
	broken = 4 * time.Second
)

// report logs measured times, and holds that they don't depend on reports.
func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("%s: %v in the middle, at most %v", what, median.Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if median > broken {
		t.Errorf("%s took %v; want about half a second, and at most %v", what, median, broken)
	}
}

func TestCancellationsAndLinesOfOutputArriveAtOnce(t *testing.T) {
	slowtest.Require(t, "it measures times")
	s := newSite(t)
	s.serve()
	var cancels, lines []time.Duration
	for i := range rounds {
		id := "t" + strconv.Itoa(i)
		s.must(os.WriteFile(s.path("gpu/said"), []byte("first\n"), 0o600))
		s.send("talker", id)
		s.await("a directory of the run at the owner", func() bool {
			return s.command(local, "mailboxd", "--config", s.path("config.yaml"), "logs", id).Run() == nil
		})
		follow := s.command(local, "mailboxd", "--config", s.path("config.yaml"), "logs", id, "-f")
		follow.Stderr = os.Stderr
		output, err := follow.StdoutPipe()
		s.must(err)
		s.must(follow.Start())
		reader := bufio.NewReader(output)
		s.line(reader, "first")
		lines = append(lines, s.measure(func() {
			file, err := os.OpenFile(s.path("gpu/said"), os.O_WRONLY|os.O_APPEND, 0o600)
			s.must(err)
			_, err = file.WriteString("second\n")
			s.must(err)
			s.must(file.Close())
			s.line(reader, "second")
		}))
		cancels = append(cancels, s.measure(func() {
			s.mailboxd("cancel", id)
			s.await("the end of a cancelled run", func() bool { return slices.Contains(s.lines("stopped"), id) })
		}))
		s.await("the result of a cancelled run", func() bool { return s.result(id).Status != "" })
		_ = follow.Process.Kill()
		_ = follow.Wait()
	}
	report(t, "a cancellation, with the start of its command", cancels)
	report(t, "a line of output", lines)
}

func (s *site) measure(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// line reads a line, which is to be of some words.
func (s *site) line(from *bufio.Reader, want string) {
	s.t.Helper()
	if got, err := from.ReadString('\n'); err != nil || got != want+"\n" {
		s.t.Fatalf("the output is %q, %v; want %q", got, err, want)
	}
}
