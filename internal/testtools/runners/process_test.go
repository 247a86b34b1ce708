package runners_test

import "sync"

// work has what reaps programs.
var work sync.WaitGroup
