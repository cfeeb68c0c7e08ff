//go:build unix && !linux

package proc

import "os"

func (t *tree) wait(p *os.Process) (*os.ProcessState, error) {
	defer t.setReaped()
	state, err := p.Wait()
	_ = t.kill() // a group keeps its number while it has members; without any there is nothing to kill
	return state, err
}

// sweep does nothing: this system does not tell who descends from whom once the parents are dead.
func (t *tree) sweep() {}
