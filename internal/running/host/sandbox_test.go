package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnOldOrUnknownVersionOfBubblewrapIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"bubblewrap 0.8.0":         "",
		"bubblewrap 0.11.0":        "",
		"bubblewrap 1.0.0-2ubuntu": "",
		"bubblewrap 0.7.9":         "version 0.7.9 is too old",
		"bubblewrap 0.4.1":         "version 0.4.1 is too old",
		"":                         "cannot be read",
		"bubblewrap":               "cannot be read",
		"bubblewrap 0.8":           "cannot be read",
		"bubblewrap 0.-8.0":        "cannot be read",
		"bubblewrap x.y.z":         "cannot be read",
		"other 9.9.9":              "cannot be read",
	} {
		err := checkVersion(line)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("checkVersion(%q) = %v; want %q", line, err, want)
		}
	}
}

func TestAnOldBubblewrapIsNotTried(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bwrap")
	script := "#!/bin/sh\n[ \"$1\" = --version ] || touch " + dir + "/tried\necho bubblewrap 0.6.2\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := tryBubblewrap(path); err == nil || !strings.Contains(err.Error(), "0.6.2 is too old") {
		t.Errorf("tryBubblewrap = %v; want that it is too old", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tried")); err == nil {
		t.Error("it was asked for more than its version")
	}
}

func TestWhatOthersMayNotReadIsMasked(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"open": 0o644, "key": 0o600, "group": 0o640} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	private := filepath.Join(dir, "private")
	if err := errors.Join(os.MkdirAll(filepath.Join(private, "below"), 0o700), os.Symlink("key", filepath.Join(dir, "link")), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	got := closedToOthers(dir)
	if want := []string{filepath.Join(dir, "group"), filepath.Join(dir, "key")}; !slices.Equal(got.Files, want) {
		t.Errorf("the files are %q; want %q", got.Files, want)
	}
	if want := []string{private}; !slices.Equal(got.Dirs, want) {
		t.Errorf("the directories are %q; want %q", got.Dirs, want)
	}
}

func TestWhatCanBeWrittenBelowProcIsASetting(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"cpuinfo": 0o444, "mtrr": 0o644, "1/mem": 0o600, "sys/kernel": 0o444, "pressure/io": 0o666, "tty/drivers": 0o444} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("mtrr", filepath.Join(dir, "mounts")); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "sys"), filepath.Join(dir, "mtrr"), filepath.Join(dir, "pressure")}
	if got := kernelSettings(dir); !slices.Equal(got, want) {
		t.Errorf("the settings are %q; want %q", got, want)
	}
}
