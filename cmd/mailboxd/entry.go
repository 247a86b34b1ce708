package main

import (
	"time"

	"mailboxd/envelope/dialect"
)

// An agentEntry is one entry of agents.
type agentEntry struct {
	ID             string        `mapstructure:"id"`
	Dialect        string        `mapstructure:"dialect"`
	Definition     string        `mapstructure:"definition"`
	Replicas       int           `mapstructure:"replicas"`
	Manifest       string        `mapstructure:"manifest"`
	Profile        string        `mapstructure:"profile"`
	Model          string        `mapstructure:"model"`
	Exec           execEntry     `mapstructure:"exec"`
	Worker         workerEntry   `mapstructure:"worker"`
	Inbox          *inboxEntry   `mapstructure:"inbox"` // nil: the agent is run
	Timeout        time.Duration `mapstructure:"timeout"`
	IdleTimeout    time.Duration `mapstructure:"idle_timeout"`
	ExitTimeout    time.Duration `mapstructure:"exit_timeout"`
	Concurrency    int           `mapstructure:"concurrency"`
	Retries        int           `mapstructure:"retries"`
	Backoff        time.Duration `mapstructure:"backoff"`
	Idempotent     bool          `mapstructure:"idempotent"`
	OnError        []errorRule   `mapstructure:"on_error"`
	Resend         string        `mapstructure:"resend"`
	AllowUnmetered bool          `mapstructure:"allow_unmetered"`

	TaskTypes       []string `mapstructure:"task_types"`
	Tools           []string `mapstructure:"tools"` // nil: no grant of ours narrows them
	MaxSensitivity  string   `mapstructure:"max_sensitivity"`
	Environments    []string `mapstructure:"environments"`
	Refs            string   `mapstructure:"refs"`
	KillAtWindowEnd bool     `mapstructure:"kill_at_window_end"`

	at      int                 // where it stands among the entries
	replica string              // the id of the entry, of which this is a replica; "" for none
	defined *dialect.Definition // what definition says; nil: there is none
}

type execEntry struct {
	Command   []string `mapstructure:"command"`
	Output    string   `mapstructure:"output"`
	Stdin     string   `mapstructure:"stdin"`
	Cwd       string   `mapstructure:"cwd"`
	Env       []string `mapstructure:"env"`
	MaxOutput int64    `mapstructure:"max_output"`
}

type workerEntry struct {
	Command  []string `mapstructure:"command"`
	Count    int      `mapstructure:"count"`
	InFlight int      `mapstructure:"in_flight"`
	Cwd      string   `mapstructure:"cwd"`
	Env      []string `mapstructure:"env"`
}

// agentDefaults fill what an entry of agents leaves out.
func agentDefaults() agentEntry {
	return agentEntry{
		Dialect:     "ainl",
		Exec:        execEntry{Output: "envelope", Stdin: "request", MaxOutput: 64 << 20},
		Timeout:     10 * time.Minute,
		ExitTimeout: time.Minute,
		Worker:      workerEntry{Count: 1, InFlight: 1},
		Concurrency: 1,
		Backoff:     time.Second,
		Resend:      "rerun",

		MaxSensitivity: "internal",
		Refs:           "optional",
	}
}
