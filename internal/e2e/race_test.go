//go:build linux && race

package e2e

// raced says that these tests look for races; the program is built so too.
const raced = true
