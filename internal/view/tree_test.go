package view

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/text"
)

func ids(n ...muster.TaskID) []muster.TaskID { return n }

func TestTreePutsATaskUnderTheOneItWaitsFor(t *testing.T) {
	text := Tree(Screen{Width: 80}, []muster.Task{
		{ID: 2, Subject: "counter", Status: muster.InProgress, Owner: "alice", DependsOn: ids(1)},
		{ID: 3, Subject: "reader", Status: muster.NeedsAttention},
		{ID: 4, Subject: "report", Status: muster.Pending, DependsOn: ids(2), BlockedBy: ids(2)},
		{ID: 5, Subject: "docs", Status: muster.Pending, DependsOn: ids(2, 3, 4), BlockedBy: ids(2, 3, 4)},
		{ID: 6, Subject: "tests", Status: muster.Pending, ClaimRole: "tester"},
		{ID: 7, Subject: "command line", Status: muster.Pending, DependsOn: ids(2), BlockedBy: ids(2)},
	})
	same(t, text, `ID  SUBJECT         STATUS     OWNER     WAITS FOR
 2  counter         working    alice
 4    report        waiting
 5      docs        waiting              and 2, 3
 7    command line  waiting
 3  reader          needs you
 6  tests           ready      a tester
`)
}

// Where nothing is left to say, there is no column for it; what is not shown is named.
func TestTreeWithoutItsBlockers(t *testing.T) {
	tree := func(all ...muster.Task) string { return Tree(Screen{Width: 80}, all) }
	same(t, tree(muster.Task{ID: 1, Subject: "a", Status: muster.Pending},
		muster.Task{ID: 2, Subject: "b", Status: muster.Pending, BlockedBy: ids(1)}),
		"ID  SUBJECT  STATUS   OWNER\n 1  a        ready\n 2    b      waiting\n")
	same(t, tree(muster.Task{ID: 2, Subject: "b", Status: muster.Pending, BlockedBy: ids(1, 3)}),
		"ID  SUBJECT  STATUS   OWNER  WAITS FOR\n 2  b        waiting         1, 3\n")
}

// chain is n tasks, each behind the one before and half of them behind the first too.
func chain(n int) (all []muster.Task) {
	for i := range n {
		t := muster.Task{ID: muster.TaskID(i + 1), Subject: "a subject that is longer than its column 件",
			Status: muster.Pending, Owner: "a-long-member-name"}
		if i > 0 {
			t.BlockedBy = ids(muster.TaskID(i))
		}
		if i > 1 && i%2 == 0 {
			t.BlockedBy = ids(1, muster.TaskID(i))
		}
		all = append(all, t)
	}
	return all
}

func TestTreeFitsANarrowTerminal(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(Tree(Screen{Width: 60}, chain(1000)), "\n"), "\n")
	if len(lines) != 1001 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		if text.Columns(l) >= 60 {
			t.Fatalf("%d columns: %q", text.Columns(l), l)
		}
	}
	if !strings.Contains(lines[1000], "   a su") {
		t.Errorf("nothing is left of the subject: %q", lines[1000])
	}
	if !strings.HasSuffix(lines[1000], " 999") || !strings.HasSuffix(lines[999], " 1, 998") {
		t.Errorf("far to the right a task names what it waits for: %q %q", lines[999], lines[1000])
	}
}

// Whatever foreign programs have written, every task is shown once.
func TestTreeShowsEveryTaskOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		some := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 25),
			func(i int) muster.TaskID { return muster.TaskID(i) }), 0, 4)
		all := make([]muster.Task, n)
		for i := range all {
			all[i] = muster.Task{ID: muster.TaskID(i + 1), BlockedBy: some.Draw(t, "waits"),
				DependsOn: some.Draw(t, "after")}
		}
		tree := buildTree(all)
		seen := map[muster.TaskID]int{}
		for i, b := range tree {
			if seen[b.task.ID]++; seen[b.task.ID] > 1 {
				t.Fatalf("%d twice", b.task.ID)
			}
			if b.level > 0 && (i == 0 || b.level > tree[i-1].level+1 || seen[b.parent] == 0) {
				t.Fatalf("%d is on level %d under nothing", b.task.ID, b.level)
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d", len(seen), n)
		}
	})
}
