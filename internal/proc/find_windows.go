package proc

import "os/exec"

// findProgram looks program up in this process's PATH, with the extensions that Windows adds.
func findProgram(program, _ string) (string, error) {
	full, err := exec.LookPath(program)
	if err != nil {
		return "", errNoProgram(program)
	}
	return full, nil
}
