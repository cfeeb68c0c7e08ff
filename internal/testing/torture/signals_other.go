//go:build !unix

package torture

import (
	"errors"
	"os"
)

func halt(*os.Process) error { return errors.ErrUnsupported }

func wake(*os.Process) error { return errors.ErrUnsupported }

func wasKilled(*os.ProcessState) bool { return false }
