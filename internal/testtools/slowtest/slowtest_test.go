package slowtest_test

import (
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

func TestASlowTestRunsWhereItWasAskedFor(t *testing.T) {
	for value, want := range map[string]bool{"1": !testing.Short(), "": false, "0": false} {
		t.Setenv(slowtest.Variable, value)
		ran := false
		t.Run("with "+slowtest.Variable+"="+value, func(t *testing.T) {
			slowtest.Require(t, "it is slow")
			ran = true
		})
		if ran != want {
			t.Errorf("with %s=%q, the test ran: %v; want %v", slowtest.Variable, value, ran, want)
		}
	}
}

func TestATestBecomesParallelOnce(t *testing.T) {
	slowtest.Parallel(t)
	slowtest.Parallel(t) // a second call of T.Parallel would panic
}

func TestATestStaysSerial(t *testing.T) {
	slowtest.Serial(t)
	slowtest.Parallel(t)
	t.Setenv(slowtest.Variable, "") // it panics in a parallel test
	t.Run("and its subtest", func(t *testing.T) {
		slowtest.Parallel(t)
		t.Setenv(slowtest.Variable, "")
	})
}
