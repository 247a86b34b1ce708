package main

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/internal/operating/config"
)

func TestDoctorReadsNothingOfARunnerWhoseConfigurationCannotBeRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Chdir(t.TempDir())
	if err := os.Mkdir(filepath.Join(home, "mailboxd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{config.DefaultRunnerPath(): "slots: many\n", config.NoJobsFile: "of another program\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := ownRunner(); r.Err == nil || r.NoJobs != "" {
		t.Errorf("the runner is %+v; want the mistake alone", r)
	}
}
