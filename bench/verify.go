package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// verify fails unless a directory has the result of each task with status ok, and no other
// file.
func verify(dir string, count int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) != count {
		return fmt.Errorf("%d result files for %d tasks", len(entries), count)
	}
	for _, e := range entries {
		if err := verifyOne(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func verifyOne(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Ext(path) == "" && string(raw) == "ok\n" { // written by a shell
		return nil
	}
	var result struct {
		ID     string `json:"task_id"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if result.ID+".json" != filepath.Base(path) || result.Status != "ok" {
		return fmt.Errorf("%s is no good result: %.500s", path, raw)
	}
	return nil
}
