package carrier

import (
	"context"
	"errors"
	"testing"
)

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
