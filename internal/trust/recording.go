package trust

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"path/filepath"
)

// RecordingKey returns the key with which the user's recordings are signed. It is made of the secret key, which is made
// where there is none.
func (r *Registry) RecordingKey(ctx context.Context) ([]byte, error) {
	if r.missing != nil {
		return nil, r.missing
	}
	unlock, err := r.files.Lock(ctx, filepath.Join(r.dir, "registry.lock"))
	if err != nil {
		return nil, r.unusable(err)
	}
	defer unlock()
	key, err := r.makeKey()
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("muster recordings"))
	return mac.Sum(nil), nil
}
