package runners_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"mailboxd/internal/testtools/slowtest"
)

var outage = flag.Duration("outage", 0, "how long the network is away; 0: 8s, and 3m for slow tests")

// network puts the machines of a site into network namespaces with a link between them, and the hub on one of them.
// Without root or iproute2 the test is skipped.
func network(hubAt machine) func(*site) {
	return func(s *site) {
		s.t.Helper()
		s.hubAt = hubAt
		for i, on := range []machine{local, gpu} {
			name := fmt.Sprintf("mailboxd-%d-%s-%s", os.Getpid(), hubAt, on)
			if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
				s.t.Skipf("no network is cut, since network namespaces can't be made here: %v: %s; it needs root and iproute2", err, out)
			}
			s.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
			s.spaces[on] = name
			if on == hubAt {
				s.listen = fmt.Sprintf("10.213.0.%d:4222", i+1)
			}
		}
		s.ip("link", "add", "wire", "netns", s.spaces[local], "type", "veth", "peer", "name", "wire", "netns", s.spaces[gpu])
		for i, on := range []machine{local, gpu} {
			s.ip("-n", s.spaces[on], "addr", "add", fmt.Sprintf("10.213.0.%d/24", i+1), "dev", "wire")
			s.ip("-n", s.spaces[on], "link", "set", "lo", "up")
			s.ip("-n", s.spaces[on], "link", "set", "wire", "up")
		}
	}
}

func (s *site) ip(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// promptly is how soon after the network is back an answer arrives.
const promptly = 20 * time.Second

func TestAnAnswerArrivesSoonAfterTheNetworkIsBack(t *testing.T) {
	away := *outage
	if away == 0 && slowtest.Enabled() {
		away = 3 * time.Minute
	}
	if away == 0 {
		away = 8 * time.Second
	}
	for name, hubAt := range map[string]machine{"of the runner": local, "of the owner": gpu} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, network(hubAt))
			s.serve()
			s.send("worker", "during", "after")
			s.ip("-n", s.spaces[hubAt], "link", "set", "wire", "down")
			over := time.After(away)
			s.release("during")
			s.await("the end of a run while the network is away", func() bool { return len(s.lines("ended")) == 1 })
			<-over
			if s.result("during").Status != "" {
				t.Fatal("the answer arrived while the network was away")
			}
			s.ip("-n", s.spaces[hubAt], "link", "set", "wire", "up")
			back := time.Now()
			s.await("the answer", func() bool { return s.result("during").Status != "" })
			took := time.Since(back)
			t.Logf("after %v, the answer arrived in %v", away, took.Round(time.Millisecond))
			if took > promptly {
				t.Errorf("the answer arrived %v after the network was back; want at most %v", took, promptly)
			}
			s.release("after")
			s.wantAnswers("during", "after")
		})
	}
}
