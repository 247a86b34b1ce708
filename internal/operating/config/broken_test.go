package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Each file of testdata/broken has a configuration and all its mistakes.
func TestEveryMistakeOfABrokenFileIsFoundAtOnce(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d broken files, %v; want 20 or more", len(files), err)
	}
	for _, file := range files {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := mistakesOf(t, archive)
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				want = &archive.Files[len(archive.Files)-1]
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("mistakes of %s (-want +got):\n%s", file, diff)
			}
		})
	}
}

var variableLine = regexp.MustCompile(`(?m)^env (\w+)=(.*)$`)

// mistakesOf writes the files of an archive and examines the configuration, one mistake a
// line. The only program on PATH is named agent.
func mistakesOf(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, f := range archive.Files {
		if f.Name == "want" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	programs := t.TempDir()
	for _, name := range []string{"agent", "sh"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", programs)
	t.Setenv("HOME", dir)
	for _, v := range variableLine.FindAllStringSubmatch(string(archive.Comment), -1) {
		t.Setenv(v[1], v[2])
	}
	found, err := Examine("config.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, m := range found.Mistakes {
		lines.WriteString(strings.ReplaceAll(m.String(), dir, "$DIR") + "\n")
	}
	return lines.String()
}

func TestAMisspelledLocationIsNotGuessed(t *testing.T) {
	t.Setenv("AINL_AGENT_ROOT", "")
	path := filepath.Join(t.TempDir(), "config.yaml")
	for text, wrong := range map[string]bool{
		"rooot: /x": true, "state-dir: /x": true, "statedir: /x": true,
		"root: /x\nrooot: /y": false, "polcy: {}": false, "root: /x\nlimits: {concurency: 3}": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, _, err := Partial(path, ""); (err != nil) != wrong {
			t.Errorf("Partial(%q) = root %q, %v; want an error: %v", text, c.Root, err, wrong)
		}
	}
	if err := os.WriteFile(path, []byte("rooot: /x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, _, err := Partial(path, "/other"); err != nil || c.Root != "/other" {
		t.Errorf("Partial with --root beside a misspelled root = %q, %v", c.Root, err)
	}
}
