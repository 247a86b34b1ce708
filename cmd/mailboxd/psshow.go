package main

import (
	"context"
	"fmt"
	"time"

	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
)

// show prints what the flags ask for, as it is now.
func (f *psFlags) show(ctx context.Context, d *reader.Reader, s term.Screen) error {
	now := time.Now()
	switch {
	case f.asJSON:
		return d.Each(ctx, f.query(now), func(page []client.Task) error { return printEach(s, page) })
	case f.all:
		return f.showAll(ctx, d, s, now)
	}
	list, err := d.List(ctx, f.query(now))
	if err != nil {
		return err
	}
	around, err := d.WaitContext(ctx, list.Tasks, now)
	if err != nil {
		return err
	}
	if err := around.Table(list.Tasks).Print(s); err != nil {
		return err
	}
	if list.More > 0 {
		s.Line("%s", s.Paint(term.Faint, fmt.Sprintf("… %d more; see: mailboxd ps --all", list.More)))
	}
	return nil
}

// showAll prints a table of any length. Its columns are as wide as what was
// printed so far needs.
func (f *psFlags) showAll(ctx context.Context, d *reader.Reader, s term.Screen, now time.Time) error {
	var widths []int
	return d.Each(ctx, f.query(now), func(page []client.Task) error {
		if len(page) == 0 {
			return nil
		}
		around, err := d.WaitContext(ctx, page, now)
		if err != nil {
			return err
		}
		part := around.Table(page)
		if widths != nil {
			part.Head = nil
		}
		part.Widths = widths
		err = part.Print(s)
		widths = part.Widths
		return err
	})
}

// printEach prints each task as a line of JSON.
func printEach(s term.Screen, tasks []client.Task) error {
	for _, t := range tasks {
		if err := term.PrintJSON(s, t); err != nil {
			return err
		}
	}
	return nil
}
