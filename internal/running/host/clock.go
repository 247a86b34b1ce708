package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ClockSynchronised reports whether something keeps the clock right.
func ClockSynchronised() (bool, error) {
	var t unix.Timex // with no mode it only asks
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, fmt.Errorf("ask for the clock: %w", err)
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, nil
}
