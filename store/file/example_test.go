package file_test

import (
	"context"
	"fmt"
	"os"

	"muster"
	"muster/store/file"
)

// A document is written only if nobody else has changed it since it was read.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := file.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	notes := store.Table("notes")
	rev, err := notes.Put(ctx, "first", []byte(`{"text":"hello"}`), muster.None)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = notes.Put(ctx, "first", []byte(`{"text":"again"}`), rev); err != nil {
		fmt.Println(err)
		return
	}
	doc, err := notes.Get(ctx, "first")
	fmt.Println(string(doc.Data), err)
	// Output: {"text":"again"} <nil>
}
