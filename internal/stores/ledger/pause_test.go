package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/stores/ledger"
)

func TestPausesAreRememberedByName(t *testing.T) {
	l := open(t)
	news := map[string]bool{}
	update(t, l, func(tx *ledger.Tx) (err error) {
		for _, agent := range []string{"b", "", "gone"} {
			if news[agent], err = tx.Pause(agent); err != nil {
				return err
			}
		}
		if news["again"], err = tx.Pause("b"); err != nil {
			return err
		}
		if news["resumed"], err = tx.Resume("gone"); err != nil {
			return err
		}
		news["resumed nobody"], err = tx.Resume("nobody")
		return err
	})
	want := map[string]bool{"b": true, "": true, "gone": true, "again": false, "resumed": true, "resumed nobody": false}
	if !cmp.Equal(news, want) {
		t.Errorf("news = %v; want %v", news, want)
	}
	if got, err := l.Paused(t.Context()); err != nil || !cmp.Equal(got, []string{"", "b"}) {
		t.Errorf("Paused() = %q, %v; want everyone and b", got, err)
	}
}
