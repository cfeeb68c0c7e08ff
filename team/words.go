package team

import (
	"context"
	"sync/atomic"
	"time"

	"muster/internal/live"
	"muster/loop"
)

// wordsInterval is the time for which words are collected before they are written for other processes.
const wordsInterval = 50 * time.Millisecond

// words is what members say while it streams in, shared with other processes in files of a directory.
type words struct{ own atomic.Pointer[string] } // the file of share

// share writes what members of this process say for the faces of other processes, until ctx ends. It is a subscriber
// like any other: the members never wait for it, and where it is too slow, words are missing.
func (x *words) share(ctx context.Context, from *subscribers, dir string) {
	sub := from.add()
	defer from.remove(sub)
	w := live.NewWriter(dir)
	defer func() { _ = w.Close() }() // a file that stays is removed later
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.wake:
		}
		// What has collected since the last write goes into the file at once.
		var pieces []live.Piece
		for _, e := range sub.take() {
			switch e := e.(type) {
			case TurnEvent:
				if p, ok := pieceOf(e); ok {
					pieces = append(pieces, p)
				}
			case CheckEvent:
				pieces = append(pieces, live.Piece{Kind: live.Test, Task: e.Task, Text: e.Test})
			}
		}
		if len(pieces) == 0 {
			continue
		}
		if w.Write(pieces) != nil {
			return // the disk is full, for one: faces of other processes show whole replies
		}
		// The followers of this process leave its own file out: they have its words already.
		path := w.Path()
		x.own.Store(&path)
		if !wait(ctx, wordsInterval) {
			return
		}
	}
}

func pieceOf(e TurnEvent) (p live.Piece, ok bool) {
	p.Member = e.Member
	// Whole replies and calls of tools are in the transcript, and need not be streamed.
	switch e := e.Event.(type) {
	case loop.TextDelta:
		p.Kind, p.Part, p.Text = live.Text, e.Part, e.Text
	case loop.ReplyDiscarded:
		p.Kind = live.Again
	case loop.TurnEnded:
		p.Kind = live.End
	case loop.ToolProgress:
		p.Kind, p.Text = live.Progress, e.Text
	default:
		return p, false
	}
	return p, true
}

// follow sends what members of other processes say, until ctx ends.
func (x *words) follow(ctx context.Context, dir string, send func(Event) bool) {
	isOwn := func(path string) bool {
		own := x.own.Load()
		return own != nil && *own == path
	}
	for p := range live.Follow(ctx, dir, isOwn) {
		// A test belongs to a check, and not to a turn.
		if p.Kind == live.Test {
			if !send(CheckEvent{Task: p.Task, Test: p.Text}) {
				return
			}
			continue
		}
		e := TurnEvent{Member: p.Member, IsRemote: true}
		switch p.Kind {
		case live.Text:
			e.Event = loop.TextDelta{Part: p.Part, Text: p.Text}
		case live.Again:
			e.Event = loop.ReplyDiscarded{}
		case live.End:
			e.Event = loop.TurnEnded{}
		case live.Progress:
			e.Event = loop.ToolProgress{Text: p.Text}
		default:
			continue // of a newer program
		}
		if !send(e) {
			return
		}
	}
}
