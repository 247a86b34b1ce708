package fakemodel

import (
	"fmt"
	"sync/atomic"
)

// numbers makes ids unique in the process, since programs tell messages apart by them.
var numbers atomic.Int64

func messageID() string { return fmt.Sprintf("msg_%06d", numbers.Add(1)) }

func callID(index int) string { return fmt.Sprintf("call_%06d_%d", numbers.Add(1), index) }
