package filehash

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheHashOfALargeFileIsRememberedOnceTheFileHasSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, make([]byte, rememberedSize), 0o700); err != nil {
		t.Fatal(err)
	}
	var h Hashes
	first := h.Of(path)
	if h.Of(path) != first || h.reads != 2 {
		t.Errorf("a file that was just written was read %d times in 2; want 2", h.reads)
	}
	h.now = func() time.Time { return time.Now().Add(2 * settled) }
	for range 2 {
		if h.Of(path) != first {
			t.Error("a settled file has another hash")
		}
	}
	if h.reads != 3 {
		t.Errorf("a settled file was read %d more times in 2; want 1", h.reads-2)
	}
	if err := os.Chmod(path, 0o500); err != nil { // any change
		t.Fatal(err)
	}
	if h.Of(path) != first || h.reads != 4 {
		t.Errorf("a changed file was read %d more times; want 1", h.reads-3)
	}
}
