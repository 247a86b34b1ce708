package differential_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var (
	scenarios = flag.Int("scenarios", 6, "how many random scenarios to run")
	seed      = flag.Uint64("seed", 1, "the seed of the first scenario; each further scenario has the next one")
	parallel  = flag.Int("at-once", 4, "how many scenarios run at the same time")
	show      = flag.Bool("show", false, "print the record of each scenario")
	changed   = flag.Bool("changed", false, "run the test that builds deliberately changed daemons")
)

// work is a directory for the builds, which TestMain removes.
var work string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withWork(m))
}

func withWork(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "differential-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	return m.Run()
}
