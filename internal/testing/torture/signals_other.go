//go:build !unix

package torture

import (
	"errors"
	"os"

	"muster"
)

func possible() error {
	return muster.Errorf(muster.Unavailable,
		"processes cannot be stopped and continued on this system, so nothing can be tortured here")
}

func halt(*os.Process) error { return errors.ErrUnsupported }

func wake(*os.Process) error { return errors.ErrUnsupported }

func killed(*os.ProcessState) bool { return false }
