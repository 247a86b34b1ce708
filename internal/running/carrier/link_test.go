package carrier

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestALostConnectionIsSaidInOneLine(t *testing.T) {
	if words := lostFor(io.EOF).Error(); words != "the connection to the hub is lost: EOF" {
		t.Errorf("said %q", words)
	}
}

func TestAnOwnerDoesNotUseTheKeyOfARunner(t *testing.T) {
	connect := Options{URL: "nats://127.0.0.1:1", Credentials: Credentials{Root: "main", Runner: "gpu"}}
	if _, err := DialOwner(t.Context(), OwnerOptions{Options: connect}); err == nil || !strings.Contains(err.Error(), "those of runner gpu; use hub.nk") {
		t.Errorf("the owner connects with the key of a runner: %v", err)
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
