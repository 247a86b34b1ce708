package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNothingOfOursIsLostWhenAFileIsUnmapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	page := os.Getpagesize()
	if err := os.WriteFile(path, []byte(strings.Repeat("a", page)), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mapped := func() []byte {
		pages, err := unix.Mmap(int(file.Fd()), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(pages) })
		return pages
	}
	sealed, writable, read := mapped(), mapped(), mapped()
	sealed[0], writable[0] = 'b', 'b'
	for _, pages := range [][]byte{sealed, read} {
		if err := unix.Mprotect(pages, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
	}
	if read[0] != 'a' { // which maps it
		t.Fatal("the file is not what was written")
	}
	smaps := func() string {
		text, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Skip(err)
		}
		return string(text)
	}
	if n := mappedPages(smaps(), path); n != 3 {
		t.Fatalf("%d pages are mapped; want 3", n)
	}
	unmapFile(smaps(), path)
	if n := mappedPages(smaps(), path); n != 2 {
		t.Errorf("%d pages are mapped; want those two that were written", n)
	}
	if sealed[0] != 'b' || writable[0] != 'b' || read[0] != 'a' {
		t.Errorf("the pages begin with %c, %c and %c; want b, b and a", sealed[0], writable[0], read[0])
	}
}

// mappedPages counts the mappings of a page of the file that have it.
func mappedPages(smaps, file string) (n int) {
	ours := false
	for line := range strings.Lines(smaps) {
		words := strings.Fields(line)
		switch {
		case !strings.HasSuffix(words[0], ":"):
			ours = strings.HasSuffix(line, " "+file+"\n")
		case ours && words[0] == "Rss:" && words[1] != "0":
			n++
		}
	}
	return n
}

func TestTheProgramGoesOnWithoutItsPages(t *testing.T) {
	UnmapProgram()
	if program, err := os.Executable(); err != nil || !strings.HasSuffix(program, ".test") {
		t.Errorf("Executable() = %q, %v; want the test", program, err)
	}
}
