package workspace

import (
	"testing"

	"muster/internal/testing/gittest"
)

func TestMain(m *testing.M) { gittest.Main(m) }
