package proc

import "os/exec"

// find looks program up in this process's PATH, with the extensions that Windows adds.
func find(program, _ string) (string, error) {
	full, err := exec.LookPath(program)
	if err != nil {
		return "", notFound(program)
	}
	return full, nil
}
