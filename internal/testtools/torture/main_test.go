package torture_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/internal/testtools/programs"
)

var (
	duration = flag.Duration("torture", 4*time.Second, "how long to kill and restart the daemon")
	seed     = flag.Uint64("seed", 0, "what chance begins from; 0 takes a new one")
	kills    = flag.Int("kills", 0, "stop after so many SIGKILLs; 0: when the time is over")
	soak     = flag.Int("soak", 300, "tasks of the soak")
	workers  = flag.Bool("workers", false, "soak a worker agent instead of one process per task")
	daemon   string // the path of a mailboxd built with fault points
)

// The test binary plays the agents itself: TestMain is their way in.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		play(os.Args[2], os.Args[3:])
		return
	}
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	if testing.Short() {
		os.Exit(m.Run()) // what needs the daemon is skipped
	}
	os.Exit(withDaemon(m))
}

// withDaemon builds the daemon once for all tests.
func withDaemon(m *testing.M) int {
	dir, remove, err := programs.Compile("torture-bin-", programs.Faults, "../../../cmd/mailboxd")
	if err != nil {
		panic(err)
	}
	defer remove()
	daemon = filepath.Join(dir, "mailboxd")
	return m.Run()
}

// chance returns a source of chance that is the same for a seed and a name.
func chance(name uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, name)) }
