package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"golang.org/x/sync/errgroup"
)

// together is the number of tasks that share a frame of the log, and of results that are put at
// the same time.
const together = 16

// aloneWorker does tasks with a worker: a frame for the lines of a group, a question and an
// answer for each, a frame for their ends. Meanwhile it puts the results, each with a sync of
// its own.
func aloneWorker(command ...string) attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		b, err := newBare(dir)
		if err != nil {
			return took, err
		}
		defer b.close()
		took, err = ownEffort(func() error { return b.answered(ctx, command, count) })
		if err != nil {
			return took, err
		}
		return took, verify(b.path("results"), count)
	}
}

// answered starts a worker, and has it answer the tasks.
func (b *bare) answered(ctx context.Context, command []string, count int) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	questions, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan int, together)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(ended)
		defer questions.Close()
		return b.askAll(ctx, questions, bufio.NewScanner(answers), ended, count)
	})
	for range together {
		work.Go(func() error {
			for n := range ended {
				if err := b.put(id(n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return errors.Join(work.Wait(), cmd.Wait())
}

// askAll sends the tasks group by group, and sends on ended each task whose end is durable.
func (b *bare) askAll(ctx context.Context, questions io.Writer, answers *bufio.Scanner, ended chan<- int, count int) error {
	for from := 0; from < count; from += together {
		to := min(from+together, count)
		var lines []byte
		for n := from; n < to; n++ {
			lines = append(lines, line(n)...)
		}
		if err := b.commit(len(lines)); err != nil {
			return err
		}
		if _, err := questions.Write(lines); err != nil {
			return err
		}
		for n := from; n < to; n++ {
			if !answers.Scan() {
				return fmt.Errorf("the worker ended at %s: %w", id(n), errors.Join(answers.Err(), context.Cause(ctx)))
			}
		}
		if err := b.commit(endSize * (to - from)); err != nil {
			return err
		}
		for n := from; n < to; n++ {
			select {
			case ended <- n:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
