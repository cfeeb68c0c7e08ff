//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	root "muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/journal"
	"muster/store/file"
)

func (w *world) open() (*file.Store, *journal.Journal) {
	w.tb.Helper()
	s := need(file.Open(w.root))(w.tb)
	w.tb.Cleanup(func() { s.Close() })
	return s, journal.New(s.Log())
}

// replace writes a file as durably as can be: write, fsync, rename, fsync of the directory.
func replace(path string, data []byte) error {
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// BenchmarkClaim is claims in one process on a board that it knows, each beside one replaced file of the same size.
func BenchmarkClaim(b *testing.B) {
	const n = 100
	ctx := b.Context()
	w := newWorld(b, 1)
	w.board(n)
	s, j := w.open()
	tasks := board.New(s, j)
	tasks.Watch(ctx) // as every living team does
	if all := need(tasks.List(ctx))(b); len(all) != n {
		b.Fatalf("the board has %d tasks", len(all))
	}
	probe, data := filepath.Join(w.base, "probe"), need(os.ReadFile(filepath.Join(w.root, ".tasks", "task_1.json")))(b)
	var writes, claims samples
	for i := range n {
		start := time.Now()
		must(b, replace(probe, data))
		writes.took(start)
		start = time.Now()
		if _, ok, err := tasks.ClaimNext(ctx, board.Claim{Owner: root.Name(fmt.Sprintf("w%d", i))}); err != nil || !ok {
			b.Fatal(ok, err)
		}
		claims.took(start)
	}
	report(b, "warm", figure{what: "claim in one process", unit: "ms", ours: claims.median(), limit: 4 * writes.median(),
		beside: writes.median(), is: "write, fsync, rename, fsync of the directory"})
}

// BenchmarkMail is one durable mail beside one fsynced append of 200 bytes.
func BenchmarkMail(b *testing.B) {
	ctx := b.Context()
	w := newWorld(b, 1)
	s, j := w.open()
	post := mailbox.New(s, j, func(context.Context, root.Name) (bool, []root.Name, error) { return true, nil, nil })
	f := need(os.OpenFile(filepath.Join(w.base, "probe"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))(b)
	defer f.Close()
	line := make([]byte, 200)
	var mails, appends samples
	for range 300 {
		start := time.Now()
		need(f.Write(line))(b)
		must(b, f.Sync())
		appends.took(start)
		start = time.Now()
		need(post.Send(ctx, root.Message{From: "alice", To: "bob", Content: "The parser is done; its tests are in parse_test.go."}))(b)
		mails.took(start)
	}
	report(b, "send", figure{what: "one durable mail", unit: "ms", ours: mails.median(), limit: 3 * appends.median(),
		beside: appends.median(), is: "one fsynced append of 200 bytes"})
}
