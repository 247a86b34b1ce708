// Package runners starts an owner, a hub and a runner as processes, and takes the network, processes, a machine or a
// disk away while agents work. It has no code but its tests. With flags, the network is away for longer:
//
//	SLOW_TESTS=1 go test ./internal/testtools/runners -outage=10m
package runners
