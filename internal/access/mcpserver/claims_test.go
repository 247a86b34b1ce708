package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
)

func TestAClaimIsRenewedUntilItIsAnsweredLostOrTooOld(t *testing.T) {
	const lease = 10 * time.Minute
	for _, c := range []struct {
		name     string
		answered time.Duration         // 0: never
		renew    func(times int) error // what the daemon says
		times    int                   // how often it is asked
		took     time.Duration         // until it is left alone
	}{
		{"never answered", 0, func(int) error { return nil }, 12, time.Hour},
		{"answered", 12 * time.Minute, func(int) error { return nil }, 2, 12 * time.Minute},
		{"lost", 0, func(int) error { return &client.Error{Kind: client.Conflict} }, 1, 5 * time.Minute},
		{"without a daemon for a moment", 20 * time.Minute, func(times int) error {
			if times < 3 {
				return fmt.Errorf("renew: %w", client.ErrDown)
			}
			return nil
		}, 5, 20 * time.Minute},
		{"while one daemon takes over from another", 20 * time.Minute, func(times int) error {
			if times < 3 {
				return &client.Error{Kind: client.Stopping}
			}
			return nil
		}, 5, 20 * time.Minute},
		{"and for ever", 0, func(int) error { return errors.New("no such task") }, 1, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, times, answered := time.Now(), 0, make(chan struct{})
				if c.answered > 0 {
					time.AfterFunc(c.answered, func() { close(answered) })
				}
				mcpserver.KeepClaim(t.Context(), began.Add(lease), answered, func() (time.Time, error) {
					times++
					return time.Now().Add(lease), c.renew(times)
				})
				if took := time.Since(began); times != c.times || took != c.took {
					t.Errorf("renewed %d times in %v; want %d in %v", times, took, c.times, c.took)
				}
			})
		})
	}
}

func TestWhatAClosedEditorHadClaimedIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, hangUp := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, hangUp)
		mcpserver.KeepClaim(ctx, time.Now().Add(10*time.Minute), make(chan struct{}), func() (time.Time, error) {
			t.Error("renewed")
			return time.Time{}, nil
		})
	})
}
