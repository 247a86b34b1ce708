// Package intake reads the lines of task files. The lines of a batch and the offset behind
// them are one transaction, so none is lost and none is taken twice.
package intake
