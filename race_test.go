//go:build race

package mailboxd_test

import (
	"fmt"
	"testing"
)

// TestMain leaves these rules to a build without the race detector, with which they need ten times as long: the tests
// read files, and nothing of them runs at once.
func TestMain(*testing.M) { fmt.Println("the rules of the project are checked without -race") }
