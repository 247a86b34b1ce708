package setup

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/cli/term"
)

//go:embed template/config.yaml
var configTemplate string

//go:embed template/manifest.json
var manifestTemplate string

//go:embed template/hello.sh
var helloAgent string

// A plannedFile is a file that Init writes.
type plannedFile struct {
	path, text string
	mode       fs.FileMode
	generated  bool // always the same from one version: replaced without a backup
}

// firstFiles are the files of a new configuration. The configuration is the last, so it
// never names a missing file.
func firstFiles(config, root string, schema []byte, found []foundCLI) ([]plannedFile, error) {
	quoted, err := jsontext.AppendQuote(nil, root) // YAML reads what JSON quotes
	if err != nil {
		return nil, fmt.Errorf("write %q into a configuration: %w", root, err)
	}
	agents := filepath.Join(filepath.Dir(config), "agents")
	drafts := []plannedFile{
		{filepath.Join(agents, "hello.sh"), helloAgent, 0o700, false},
		{filepath.Join(agents, "hello.json"), manifestOf("hello", "Greets the person that the task names.", "advisory", "local"), 0o600, false},
	}
	var entries strings.Builder
	for _, c := range found {
		drafts = append(drafts, plannedFile{filepath.Join(agents, c.name+".json"), manifestOf(c.name, c.about, "hybrid", "remote"), 0o600, false})
		entries.WriteString("\n" + c.entry())
	}
	if len(found) == 0 {
		entries.WriteString(noCLI)
	}
	schemaFile := strings.TrimSuffix(config, filepath.Ext(config)) + ".schema.json"
	drafts = append(drafts, plannedFile{schemaFile, string(schema), 0o600, true})
	text := strings.NewReplacer("@SCHEMA@", filepath.Base(schemaFile), "@ROOT@", string(quoted), "@CLIS@\n", entries.String()).Replace(configTemplate)
	return append(drafts, plannedFile{config, text, 0o600, false}), nil
}

func manifestOf(id, description, mode, locality string) string {
	return strings.NewReplacer("@ID@", id, "@DESCRIPTION@", description, "@MODE@", mode, "@LOCALITY@", locality).Replace(manifestTemplate)
}

// write writes the file and says so. It keeps an existing file; with Force it makes a
// backup of it.
func (d plannedFile) write(w io.Writer, f InitOptions) error {
	there, err := os.ReadFile(d.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case !missing && (!f.Force && !d.generated || string(there) == d.text):
		_, err := fmt.Fprintln(w, "kept   ", d.path)
		return err
	case f.DryRun && d.generated:
		_, err := fmt.Fprintf(w, "would write %s\n\n", d.path)
		return err
	case f.DryRun:
		_, err := fmt.Fprintf(w, "would write %s:\n\n%s\n\n", d.path, term.Indent(strings.TrimSpace(d.text)))
		return err
	}
	if !missing && d.generated {
		if err := os.Remove(d.path); err != nil {
			return err
		}
	} else if !missing {
		backup, err := moveToBackup(d.path)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "backup ", backup)
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return err
	}
	if err := writeNew(d.path, d.text, d.mode); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "wrote  ", d.path)
	return err
}

// moveToBackup renames a file to an unused name.
func moveToBackup(path string) (string, error) {
	backup := path + ".backup"
	for n := 2; ; n++ {
		err := os.Link(path, backup) // fails where a rename would overwrite
		if err == nil {
			return backup, os.Remove(path)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		backup = fmt.Sprintf("%s.backup.%d", path, n)
	}
}

// writeNew writes a file that must not exist.
func writeNew(path, text string, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
