package setup_test

import (
	"testing"

	"muster/internal/testing/gittest"
)

func TestMain(m *testing.M) { gittest.Main(m) }
