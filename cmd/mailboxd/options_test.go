package main

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestTheEngineGetsTheLimitsOfTheConfiguration(t *testing.T) {
	cfg, err := loadYAML(t, "limits: {concurrency: 3, queue: 7, per_requester: 2, shutdown_grace: 9s, depth: 5, children: 6}\npolicy: {context_divisor: 2}")
	if err != nil {
		t.Fatal(err)
	}
	o := storeOptions(cfg, false, zerolog.Nop())
	if o.Workers != 3 || o.Queue != 7 || o.PerRequester != 2 || o.Grace != 9*time.Second || o.Depth != 5 || o.Children != 6 {
		t.Errorf("options = %+v; want those of the configuration", o)
	}
	if got := cfg.Policy.Rules().ContextDivisor; got != 2 {
		t.Errorf("context divisor %d; want 2", got)
	}
}
