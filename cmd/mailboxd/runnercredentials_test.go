package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"
)

func TestAnInterruptEndsTheReadingOfCredentials(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	ended := make(chan error, 1)
	new(sync.WaitGroup).Go(func() {
		_, _, err := credentialsFrom(ctx, in)
		ended <- err
	})
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it still reads")
	}
}
