package cli

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/text"
)

// endpointKeys has the keys of this process.
var endpointKeys keyring

// keyring has the keys of the user's endpoints that come from files and commands, as they were read last. All members
// share it, so that a command runs once for all. The zero value is ready.
type keyring struct {
	mu   sync.Mutex
	keys map[config.KeySource]string
}

// renewal reads a key again that the server refuses.
type renewal = func(ctx context.Context, refused string) (string, error)

// of returns the key for a server, and what reads it again; that is nil for a key that cannot change while the process
// runs. A command runs when its key is needed first.
func (k *keyring) of(a *App, access config.Access) (key string, renew renewal, err error) {
	source := access.Source
	if source == (config.KeySource{}) {
		return access.Key, nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if key = k.keys[source]; key == "" { // which is newer than that of the settings
		key = access.Key
	}
	if key == "" {
		if key, err = fetchKey(context.Background(), a, source); err != nil {
			return "", nil, err
		}
	}
	k.set(source, key)
	return key, func(ctx context.Context, refused string) (string, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if last := k.keys[source]; last != refused { // another member has read it again
			return last, nil
		}
		key, err := fetchKey(ctx, a, source)
		if err == nil {
			k.set(source, key)
		}
		return key, err
	}, nil
}

// values returns the keys that were read.
func (k *keyring) values() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.keys))
}

func (k *keyring) set(source config.KeySource, key string) {
	if k.keys == nil {
		k.keys = map[config.KeySource]string{}
	}
	k.keys[source] = key
	redact.Learn(key)
}

// keyTimeout is how long the command of a key may take: it may wait for a fingerprint.
const keyTimeout = time.Minute

// fetchKey reads a key from its file or its command. Errors are Invalid and do not show the key.
func fetchKey(ctx context.Context, a *App, s config.KeySource) (string, error) {
	if s.File != "" {
		return config.ReadKeyFile(s.File)
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	argv := proc.Shell(s.Command)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.WaitDelay = s.Dir, a.Env, time.Second
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", muster.Errorf(muster.Invalid, "key_command did not end within %s: %s", keyTimeout, s.Command)
	case err != nil && first != "":
		return "", muster.Errorf(muster.Invalid, "key_command failed (%w): %s", err, text.CutBytes(first, 200))
	case err != nil:
		return "", muster.Errorf(muster.Invalid, "key_command failed (%w): %s", err, s.Command)
	}
	return config.ParseKey("what key_command prints", string(out))
}
