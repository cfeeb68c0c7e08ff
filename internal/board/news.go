package board

import (
	"runtime"
	"sync"

	"muster"
)

// news is a document that changed, and the task that it says.
type news struct {
	id   muster.TaskID
	doc  muster.Doc
	task muster.Task
	err  error // it cannot be read
}

// decode reads the document, unless the task is gone or the store could not read it.
func (n *news) decode() {
	if n.err == nil && n.doc.Rev != muster.None {
		n.task, n.err = decode(n.id, n.doc.Data)
		n.doc.Data = nil
	}
}

// many is how many documents are worth decoding side by side: the first look at a large board is mostly this.
const many = 64

// batch is how many are decoded at a time: the contents of a large board are never in memory all at once.
const batch = 4096

func decodeAll(list []news) {
	workers := 1
	if len(list) >= many {
		workers = min(runtime.GOMAXPROCS(0), 8)
	}
	size := (len(list) + workers - 1) / workers
	var wg sync.WaitGroup
	for len(list) > size {
		part := list[:size]
		list = list[size:]
		wg.Go(func() { decodeEach(part) })
	}
	decodeEach(list)
	wg.Wait()
}

func decodeEach(list []news) {
	for i := range list {
		list[i].decode()
	}
}
