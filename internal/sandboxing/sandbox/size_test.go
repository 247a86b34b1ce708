package sandbox_test

import (
	"testing"

	"mailboxd/internal/sandboxing/sandbox"
)

func TestASizeHasAUnit(t *testing.T) {
	for text, want := range map[string]int64{"4GiB": 4 << 30, "512MiB": 512 << 20, "64 KiB": 64 << 10, "1TiB": 1 << 40, "1000": 1000} {
		got, err := sandbox.ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
		if again, err := sandbox.ParseSize(sandbox.FormatSize(want)); want != 1000 && (err != nil || again != want) {
			t.Errorf("FormatSize(%d) = %q", want, sandbox.FormatSize(want))
		}
	}
	if got := sandbox.FormatSize(0); got != "0 bytes" {
		t.Errorf("FormatSize(0) = %q", got)
	}
	for _, text := range []string{"", "GiB", "4GB", "-1GiB", "1.5GiB", "9999999999TiB", "much"} {
		if got, err := sandbox.ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d; want an error", text, got)
		}
	}
}
