package executor

import (
	"testing"
	"time"
)

func TestThePauseBeforeAJobIsSentAgainGrowsToAMinute(t *testing.T) {
	if first, last := unsentPause(1), unsentPause(20); first > time.Second || last < 45*time.Second || last > time.Minute {
		t.Errorf("the pauses grow from %v to %v; want from at most a second to a minute", first, last)
	}
}
