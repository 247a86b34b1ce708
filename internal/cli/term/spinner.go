package term

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Spin calls work and shows a spinner with a text meanwhile; it asks for the text
// again and again. It shows nothing unless both writers are terminals.
func Spin[T any](ctx context.Context, out, errOut io.Writer, text func(context.Context) string, work func() (T, error)) (T, error) {
	s := ScreenOf(errOut)
	if !s.Redraws || !ScreenOf(out).Redraws {
		return work()
	}
	ctx, done := context.WithCancel(ctx)
	var spinner sync.WaitGroup
	spinner.Go(func() { draw(ctx, s, text) })
	result, err := work()
	done()
	spinner.Wait()
	return result, err
}

// How often the spinner turns, and after how many turns it asks for the text.
const (
	spinnerTurn = 100 * time.Millisecond
	askEvery    = 5
)

var spinnerFrames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// draw redraws the line of the spinner until ctx ends, and removes it then.
func draw(ctx context.Context, s Screen, text func(context.Context) string) {
	turns := time.NewTicker(spinnerTurn)
	defer turns.Stop()
	defer fmt.Fprint(s, "\r\x1b[K")
	began, shown := time.Now(), ""
	for turn := 0; ; turn++ {
		if turn%askEvery == 0 {
			shown = text(ctx)
		}
		fmt.Fprint(s, "\r"+SpinnerLine(s, turn, time.Since(began), shown)+"\x1b[K")
		select {
		case <-ctx.Done():
			return
		case <-turns.C:
		}
	}
}

// SpinnerLine is one frame of a spinner. It leaves the last column free, since a full
// line would wrap.
func SpinnerLine(s Screen, turn int, elapsed time.Duration, text string) string {
	frame := string(spinnerFrames[turn%len(spinnerFrames)])
	return s.Paint(Cyan, frame) + " " + Cut(Age(elapsed)+"  "+text, s.Columns-Width(frame)-2)
}
