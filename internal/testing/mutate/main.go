// Command mutate measures how much of a package's behaviour its own tests hold. It changes one small thing in the
// source at a time (a mutant), runs the tests of the package on it, and reports the mutants with which they still pass.
//
//	go run ./internal/testing/mutate [flags] [packages]
//
// Without arguments it samples the packages that decide what becomes of a team's work. The sample depends on -seed and
// on the source alone, so that a run can be repeated. No file in the tree is touched: a mutant reaches the compiler
// through go test -overlay. The exit code is 1 when fewer than -min percent of the mutants were killed, and 2 when the
// run itself failed.
//
// A package that works only together with a higher one is tested there too: with -also, the tests of that one are tried
// on each mutant that the package's own tests let through. Its survivors are then survivors of both.
//
// mutants.go has the kinds of change, run.go runs the tests. A mutant that does not compile is not counted, and another
// one takes its place. One that the tests do not end with counts as killed.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"
)

// defaults are the packages that are measured when none is named.
var defaults = []string{"./internal/board", "./internal/landing", "./internal/worktree", "./internal/mailbox",
	"./internal/requests", "./internal/teammate", "./loop"}

// options are the settings of one run.
type options struct {
	perPackage int
	seed       uint64
	min        float64
	workers    int
	timeout    time.Duration
	tags       string
	also       []string       // patterns of packages whose tests count too
	files      *regexp.Regexp // matches the names of the files to change; nil for all
}

func main() {
	var o options
	flag.IntVar(&o.perPackage, "n", 40, "`mutants` to try in each package")
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that chooses the sample")
	flag.Float64Var(&o.min, "min", 90, "least `percent` of all mutants that the tests must kill")
	flag.IntVar(&o.workers, "workers", 2, "test runs `at a time`")
	flag.DurationVar(&o.timeout, "timeout", 0,
		"most `time` for one run of the tests (default: four times what they take, 20s at least)")
	flag.StringVar(&o.tags, "tags", "", "build `tags` for go test")
	flag.Func("also", "`package` whose tests are run too on what a package's own tests let through",
		func(p string) error {
			o.also = append(o.also, p)
			return nil
		})
	flag.Func("files", "change only the files whose names match the `pattern`", func(pattern string) (err error) {
		o.files, err = regexp.Compile(pattern)
		return err
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = defaults
	}
	enough, err := run(ctx, o, patterns, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !enough {
		os.Exit(1)
	}
}

// score is what became of the mutants of one package.
type score struct {
	name                    string
	tried, killed, notBuilt int
}

// percent is the share of the tried mutants that were killed. Where none was tried, nothing survived.
func (s score) percent() float64 {
	if s.tried == 0 {
		return 100
	}
	return 100 * float64(s.killed) / float64(s.tried)
}

// run measures the packages, writes the survivors and a table to out, and reports whether enough mutants were killed.
func run(ctx context.Context, o options, patterns []string, out io.Writer) (enough bool, err error) {
	packages, err := list(ctx, o.tags, patterns)
	if err != nil {
		return false, err
	}
	var scores []score
	for _, p := range packages {
		s, survivors, err := measure(ctx, o, p)
		if err != nil {
			return false, err
		}
		for _, m := range survivors {
			fmt.Fprintf(out, "survived  %-45s  %s\n", fmt.Sprintf("%s:%d", m.path, m.line), m.what)
		}
		scores = append(scores, s)
	}
	return table(out, scores, o.min), nil
}

// measure tries a sample of a package's mutants. Those that do not compile are replaced by the next ones of the
// shuffled list, in rounds, so that the sample is the same however fast the workers are.
func measure(ctx context.Context, o options, p pkg) (score, []mutant, error) {
	s := score{name: p.ImportPath}
	all, err := p.mutants(o.files)
	if err != nil {
		return s, nil, err
	}
	limit, err := p.baseline(ctx, o)
	if err != nil {
		return s, nil, err
	}
	name := fnv.New64a()
	_, _ = io.WriteString(name, p.ImportPath) // never fails
	rand.New(rand.NewPCG(o.seed, name.Sum64())).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var survivors []mutant
	for s.tried < o.perPackage && len(all) > 0 {
		round := all[:min(o.perPackage-s.tried, len(all))]
		all = all[len(round):]
		outcomes, err := try(ctx, o, p, round, limit)
		if err != nil {
			return s, nil, err
		}
		for i, became := range outcomes {
			if became == broken {
				s.notBuilt++
				continue
			}
			s.tried++
			if became == killed {
				s.killed++
			} else {
				survivors = append(survivors, round[i])
			}
		}
	}
	return s, survivors, nil
}

// try runs the tests on each mutant of a round and returns what became of each, in the same order.
func try(ctx context.Context, o options, p pkg, round []mutant, limit time.Duration) ([]outcome, error) {
	outcomes, errs := make([]outcome, len(round)), make([]error, len(round))
	free := make(chan struct{}, max(o.workers, 1))
	var all sync.WaitGroup
	for i, m := range round {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			outcomes[i], errs[i] = p.test(ctx, o, m, limit)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return outcomes, ctx.Err()
}

// table writes one line for each package and their sum, and reports whether the sum is at least the least percentage.
func table(out io.Writer, scores []score, least float64) bool {
	sum := score{name: "total"}
	fmt.Fprintf(out, "\n%-30s  %6s  %6s  %8s  %9s  %7s\n",
		"package", "tried", "killed", "survived", "not built", "percent")
	for _, s := range scores {
		sum.tried, sum.killed, sum.notBuilt = sum.tried+s.tried, sum.killed+s.killed, sum.notBuilt+s.notBuilt
	}
	for _, s := range append(scores, sum) {
		fmt.Fprintf(out, "%-30s  %6d  %6d  %8d  %9d  %6.0f%%\n",
			s.name, s.tried, s.killed, s.tried-s.killed, s.notBuilt, s.percent())
	}
	return sum.percent() >= least
}
