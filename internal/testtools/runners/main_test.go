package runners_test

import (
	"flag"
	"os"
	"testing"

	"mailboxd/internal/testtools/programs"
	"mailboxd/internal/testtools/slowtest"
)

var bin string // the directory of mailboxd, built with fault points, and mailboxd-hub

func TestMain(m *testing.M) {
	flag.Parse()
	slowtest.RunAtOnce(6)
	if testing.Short() {
		os.Exit(m.Run()) // each test is skipped
	}
	os.Exit(withPrograms(m))
}

// withPrograms builds the programs once for all tests.
func withPrograms(m *testing.M) int {
	dir, remove, err := programs.Compile("runners-bin-", programs.Faults, "../../../cmd/mailboxd", "../../../cmd/mailboxd-hub")
	if err != nil {
		panic(err)
	}
	defer remove()
	bin = dir
	return m.Run()
}
