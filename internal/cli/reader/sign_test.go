package reader_test

import (
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

func TestAnApproverWithPasskeysAloneIsSentToThePage(t *testing.T) {
	_, err := reader.Sign(t.Context(), client.Statement{Approver: "ada", Passkeys: []string{"passkey mbx-a.localhost YQ YQ"}})
	if err == nil || !strings.Contains(err.Error(), "ada decides with a passkey, on the page: mailboxd web") {
		t.Errorf("Sign = %v; want where to decide", err)
	}
}
