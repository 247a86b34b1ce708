// Package runnerstorm has the test of agents on other machines while programs are killed and connections are cut: each task
// has one result, and no run begins twice.
package runnerstorm
