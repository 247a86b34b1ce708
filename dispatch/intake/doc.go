// Package intake reads the lines of task files. The lines of a batch and the offset behind them
// are one transaction, so no line is lost and none is accepted twice.
package intake
