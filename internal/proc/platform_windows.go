package proc

import (
	"cmp"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// NewSession gives a program a console process group of its own, and no window.
func NewSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// tree is a job object. Windows puts every child of a member into it, kills all at once, and kills all when this
// process dies, because then the last handle to the job closes. What the program starts before it is put into the job
// escapes.
type tree struct {
	job  windows.Handle
	lock sync.Mutex // guards job, which is 0 when all is over
}

// newTree puts a program that has just started into a job object of its own.
func newTree(p *os.Process, _ string) (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		gone := p.WithHandle(func(h uintptr) { err = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
		err = cmp.Or(err, gone)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return &tree{job: job}, nil
}

func (t *tree) kill() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.job == 0 {
		return nil
	}
	return windows.TerminateJobObject(t.job, 137)
}

// wait waits for the program to end, kills what it left behind, and closes the job.
func (t *tree) wait(p *os.Process) (*os.ProcessState, error) {
	state, err := p.Wait()
	_ = t.kill()
	t.lock.Lock()
	defer t.lock.Unlock()
	_ = windows.CloseHandle(t.job)
	t.job = 0
	return state, err
}

// LowerPriority does nothing here.
func LowerPriority(int) {}
