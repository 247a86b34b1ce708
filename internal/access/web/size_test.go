package web_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/cli/demo"
	"mailboxd/internal/testtools/slowtest"
)

func TestThePageStaysSmall(t *testing.T) {
	total, scripts := int64(0), int64(0)
	for _, dir := range []string{"assets", "templates"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			total += info.Size()
			if strings.HasSuffix(path, ".js") {
				scripts += info.Size()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if total > 150<<10 || scripts > 24<<10 {
		t.Errorf("embedded are %d bytes, %d of them scripts; want at most 150 KB and 24 KB", total, scripts)
	}
	t.Logf("embedded: %d bytes, %d of them scripts", total, scripts)
}

func TestTheFirstViewIsSmall(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	v := w.visit(w.open())
	w.result("release-notes-4.2")
	size := 0
	for _, path := range []string{"/", "/style.css", "/app.js", "/icon.svg"} {
		_, text := v.get(path)
		size += len(text)
	}
	if size > 50<<10 {
		t.Errorf("the first view is %d bytes; want at most 50 KB", size)
	}
	t.Logf("the first view: %d bytes", size)
}
