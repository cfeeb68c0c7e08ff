package permissions

import (
	"testing"
	"time"
)

// mostPerDecision is how long a decision may take on average.
const mostPerDecision = 200 * time.Microsecond

// BenchmarkDecide decides about all ordinary commands and all bypasses, and fails where one takes too long on average.
func BenchmarkDecide(b *testing.B) {
	p := policy(b, Auto, "deny bash(git push *)", "deny bash(rm -rf /*)", "ask bash(docker run *)", "deny write_file(.github/**)",
		"allow bash(go test *)")
	all := append(append([]string{}, ordinary...), bypasses...)
	for b.Loop() {
		for _, command := range all {
			p.Decide(bash(command), nil)
		}
	}
	each := b.Elapsed() / time.Duration(b.N*len(all))
	b.ReportMetric(float64(each.Nanoseconds())/1000, "µs/decision")
	if each > mostPerDecision {
		b.Errorf("a decision takes %v, more than %v", each, mostPerDecision)
	}
}
