package watcher

// Pace and Gap are for tests with a fake clock, which events of a real file
// system do not obey.
var Pace = pace

const Gap = gap
