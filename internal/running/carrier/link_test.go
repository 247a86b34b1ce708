package carrier

import (
	"context"
	"errors"
	"io"
	"testing"
)

func TestALostConnectionIsSaidInOneLine(t *testing.T) {
	if words := lostFor(io.EOF).Error(); words != "the connection to the hub is lost: EOF" {
		t.Errorf("said %q", words)
	}
}

func TestAnAnswerThatCameBeforeTheConnectionWasLostIsTaken(t *testing.T) {
	l := &link{}
	l.begin()
	ctx, stop := l.within(t.Context())
	defer stop()
	l.lost()
	<-ctx.Done()
	if err := unanswered(ctx, "mbx.main.claim.gpu", nil); err != nil {
		t.Errorf("a request that was answered: %v", err)
	}
	if err := unanswered(ctx, "mbx.main.claim.gpu", context.Canceled); !errors.Is(err, errLost) || !errors.Is(err, ErrAway) {
		t.Errorf("a request that was not answered: %v", err)
	}
}
