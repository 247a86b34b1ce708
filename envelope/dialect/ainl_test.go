package dialect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func ainlCodec(t testing.TB) dialect.Codec {
	t.Helper()
	c, ok := dialect.Of(envelope.AINL)
	if !ok {
		t.Fatal("nobody speaks AINL")
	}
	return c
}

// sameLimits compares what two requests allow, and until when.
func sameLimits(t testing.TB, got, want envelope.Task) {
	t.Helper()
	ignored := cmpopts.IgnoreFields(envelope.Task{}, "Raw", "Hash", "Role", "Input", "Payload", "Type", "Description", "Metadata")
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("the limits differ: %s", diff)
	}
}
