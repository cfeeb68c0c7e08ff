package check

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/internal/durable"
	"muster/internal/failures"
)

// Many test runners write their results into a report and print little. So the checkout of a red check is searched for
// reports in the XML of JUnit, where runners usually put them. One counts only if the check has written it: a file of
// the commit, or of the set-up, says nothing of this run.

// The limits of what is searched and read. Where they leave out a report, it is noted that names are missing.
const (
	maxReports     = 1000
	maxReportBytes = 256 << 20
	maxDepth       = 10     // of directories
	maxSearchedFor = 50_000 // files and directories
)

// reportDirs are the names of directories in which each XML file may be a report.
var reportDirs = []string{
	"test-results", "test-reports", "reports", "surefire-reports", "failsafe-reports", "TestResults", "test_results",
	"test-output",
}

// isReportPath reports whether a report may have that path in a checkout.
func isReportPath(name string) bool {
	dir, base := path.Split(name)
	if path.Ext(base) != ".xml" {
		return false
	}
	stem := strings.TrimSuffix(base, ".xml")
	isIn := func(d string) bool { return slices.Contains(reportDirs, d) }
	return dir == "" || strings.HasPrefix(stem, "junit") || strings.HasSuffix(stem, "junit") || stem == "report" ||
		slices.ContainsFunc(strings.Split(dir, "/"), isIn)
}

// A name is all that is known of a file before it is read. In the directories below the root there may be XML of any
// kind, such as pages and settings, so there only the usual places count. What is read and is no report says nothing.

// timeGrain is how far the time of a file may lie before that of the process that has written it: the system takes it
// from a clock that ticks.
const timeGrain = 20 * time.Millisecond

// reportFiles returns the paths of the files in a checkout that may be reports and are not older than began. isAll is
// false where a limit has left some out.
func reportFiles(dir string, began time.Time) (names []string, isAll bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false
	}
	defer func() { _ = root.Close() }()
	seen := 0
	isAll = true
	// Invariant: nothing outside of the checkout is looked at. The walk follows no links, and the root lets none out.
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSearchedFor || len(names) > maxReports {
			isAll = false
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return nil // what cannot be read is no report of the check
		case d.IsDir() && (name == ".git" || d.Name() == "node_modules" || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case !d.Type().IsRegular() || !isReportPath(name):
			return nil
		}
		if info, err := d.Info(); err == nil && !info.ModTime().Before(began.Add(-timeGrain)) {
			names = append(names, name)
		}
		return nil
	})
	return names, isAll
}

// readReports gives the reports that a check has written since it began to what finds its failures. A file of the
// commit counts only if it is surely newer: the checkout may have been made just before the check.
func (x *run) readReports(ctx context.Context, to *failures.Finder) error {
	dir, began := x.spec.Dir, x.began
	names, isAll := reportFiles(dir, began)
	if len(names) == 0 {
		return nil
	}
	args := append([]string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", x.commit, "--"}, names...)
	out, err := x.options.Repo.Run(ctx, x.options.Repo.CommonDir(), args...)
	if err != nil {
		return unavailable(ctx, "git cannot list the files of the commit", err)
	}
	ofCommit := strings.Split(out, "\x00")
	left := maxReportBytes
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Lstat(file); err != nil ||
			slices.Contains(ofCommit, name) && !info.ModTime().After(began.Add(timeGrain)) {
			continue
		}
		if left <= 0 {
			isAll = false
			break
		}
		data := readStart(dir, file, min(left, failures.MaxReport))
		left -= len(data)
		to.Report(data)
	}
	if !isAll {
		to.Incomplete()
	}
	return nil
}

// readStart returns the first bytes of a file below dir: what is too large may be no report, such as one of coverage,
// and a report shows that its end is missing. It returns nothing of what cannot be read, or is a link.
func readStart(dir, name string, most int) []byte {
	f, err := durable.OpenBelow(dir, name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data, _ := io.ReadAll(io.LimitReader(f, int64(most))) // what was read before an error counts
	return data
}
