package envelope_test

import (
	"fmt"
	"strings"
	"testing"

	"mailboxd/envelope"
)

// BenchmarkDecodeTask decodes and checks a request of 1 KB, each field of which
// may be wrong.
func BenchmarkDecodeTask(b *testing.B) {
	short := request("description", `""`)
	raw := []byte(request("description", fmt.Sprintf("%q", strings.Repeat("x", max(0, 1024-len(short))))))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, found := envelope.DecodeTask(raw, envelope.Strict); found.Refused() {
			b.Fatal(found)
		}
	}
}
