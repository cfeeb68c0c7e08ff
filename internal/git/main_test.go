package git_test

import (
	"testing"

	"muster/internal/git/gittest"
)

func TestMain(m *testing.M) { gittest.Main(m) }
