package runnerstorm

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"mailboxd/internal/testtools/programs"
	"mailboxd/internal/testtools/slowtest"
)

// How large the storm is. All of it, in at most 15 minutes: -tasks=2000 -cuts=500 -kills=100.
var (
	tasks = flag.Int("tasks", 150, "tasks that are sent")
	cuts  = flag.Int("cuts", 25, "how often a connection to the hub is cut")
	kills = flag.Int("kills", 12, "how often a program is killed")
	seed  = flag.Uint64("seed", 0, "what chance begins from; 0 takes a new one")

	mailboxd, hub string // the paths of the programs, which have fault points
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	if !slowtest.Enabled() {
		os.Exit(m.Run()) // it is skipped
	}
	os.Exit(withPrograms(m))
}

// withPrograms builds the programs once for all tests.
func withPrograms(m *testing.M) int {
	dir, remove, err := programs.Compile("runnerstorm-bin-", programs.Faults, "../../../cmd/mailboxd", "../../../cmd/mailboxd-hub")
	if err != nil {
		panic(err)
	}
	defer remove()
	mailboxd, hub = filepath.Join(dir, "mailboxd"), filepath.Join(dir, "mailboxd-hub")
	return m.Run()
}

// chance returns a source of chance that is the same for a seed and a name.
func chance(name uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, name)) }
