package corruption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"muster"
)

// Kept is a document that was replaced, for people who look for what was lost. Nothing reads it back.
type Kept struct {
	Table string  `json:"table"`
	Key   string  `json:"key"`
	At    float64 `json:"at"`
	Why   string  `json:"why"`
	Text  string  `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"` // instead of Text, if it is not UTF-8
}

// Keep writes what is about to be replaced into kept, the table Table, and returns its key there. The key has a
// digest of the content, so that the same content is kept once, however often a crash makes it be kept.
func Keep(ctx context.Context, kept muster.Table, table string, doc muster.Doc, why error) (key string, err error) {
	k := Kept{Table: table, Key: doc.Key, At: muster.UnixTime(time.Now()), Why: why.Error(), Text: string(doc.Data)}
	if !utf8.Valid(doc.Data) {
		k.Text, k.Bytes = "", doc.Data
	}
	data, err := muster.Encode(k)
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the damaged %s cannot be kept: %w", doc.Key, err)
	}
	sum := sha256.Sum256(doc.Data)
	key = fmt.Sprintf("%s-%s-%s", table, doc.Key, hex.EncodeToString(sum[:4]))
	if _, err = kept.Put(ctx, key, data, muster.None); errors.Is(err, muster.ErrStale) {
		err = nil
	}
	return key, err
}
