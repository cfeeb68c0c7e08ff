package landing

import "context"

// returnConflicting compares those who wait with the tip, once for each: what has landed since they came may conflict
// with their work. Their owners can resolve that while checks find out whose work made the stack red, which may take
// many of them. Whoever comes later has compared its work itself.
func (s *stack) returnConflicting(ctx context.Context) error {
	tip := s.tip
	if tip == "" || tip == s.compared {
		return nil
	}
	s.compared = tip
	var later []*attempt
	defer func() { s.queue.putBack(later...) }()
	jobs := s.queue.take()
	for i, job := range jobs {
		_, conflicts, err := s.repo.MergeTree(ctx, tip, job.head)
		if ctx.Err() != nil {
			later = append(later, jobs[i:]...)
			return err
		}
		if err != nil || len(conflicts) == 0 { // what cannot be merged at all is explained when its turn comes
			later = append(later, job)
			continue
		}
		s.queue.decide(job, func(ctx context.Context, a *attempt) error { return a.mergeInLane(ctx, tip) })
	}
	return nil
}
