package faultinject

import (
	"slices"
	"strings"
)

// Point is a failpoint, with what is durable when the process passes it.
type Point struct{ Name, Durable string }

// places are the points that the code names in full.
var places = []Point{
	{"directory.begin", "nothing of a directory of the state that is missing"},
	{"directory.made", "it is there; its name is not synced"},
	{"directory.end", "all of it"},
	{"objects.packed", "a pack's files, which git has synced; their names are not synced"},
	{"refs.begin", "all refs of a transaction are where they were"},
	{"refs.moved", "all of them have moved; their names are not synced"},
	{"refs.end", "all of it"},
	{"landing.committed", "the lane's work is a commit on its branch"},
	{"landing.packed", "that commit is in a synced pack"},
	{"landing.claimed", "the landing ref is at it"},
	{"landing.noted", "the board says landing, with the head"},
	{"landing.checked", "the check's log; the merged tree is proven"},
	{"landing.reviewed", "the approval of the work is in its file"},
	{"landing.made", "the commit that is to land is in a synced pack"},
	{"landing.moving", "the board was asked once more; nothing has moved"},
	{"landing.moved", "the target is at the commit, and the landing ref is gone"},
	{"landing.lifted", "what was left of the landing ref is gone"},
	{"landing.recorded", "the task is completed with the commit's id"},
	{"landing.withdrawn", "the landing ref is gone, and nothing has landed"},
	{"landing.returned", "the task is its owner's again"},
	{"landing.revoked", "the claim's landing ref is gone and cannot be made again"},
	{"landing.kept", "a late owner's work is under refs/muster/archive/"},
	{"lane.creating", "the index says that the lane is being made, and of what"},
	{"lane.branch", "its branch is there"},
	{"lane.added", "its worktree is there"},
	{"lane.active", "the index says that it is active"},
	{"lane.undone", "of a half-made lane the worktree is gone"},
	{"lane.unbranched", "of a half-made lane the branch is gone"},
	{"lane.archived", "what it held is under refs/muster/archive/"},
	{"lane.removing", "the index says that it is on its way out, and where its work is"},
	{"lane.removed", "its worktree is gone"},
	{"lane.branchless", "its branch is gone"},
	{"lane.dropped", "its row in the index is gone"},
	{"playbook.created", "one more task of a playbook is on the board, and the run's record has all of them"},
	{"playbook.finished", "all of them are on the board, and the run's record has none"},
	{"teammate.claimed", "the task is the member's; it was not told yet"},
	{"teammate.laned", "the task names its lane"},
	{"teammate.cleared", "that older results are short is in the transcript"},
	{"teammate.compressed", "the shorter conversation is in the transcript, as a whole"},
	{"teammate.told", "what came from outside is in the transcript"},
	{"teammate.delivered", "the mail is in the transcript, and still in the inbox"},
	{"teammate.dropped", "the mail is in the transcript only"},
	{"spend.begun", "a call of a model is in the ledger, and not made yet"},
	{"spend.replied", "the model has answered, its cost is not in the ledger"},
	{"spend.ended", "the cost is in the ledger, nobody has read the reply"},
	{"teammate.replied", "the model's reply is in the transcript, none of its calls has begun"},
	{"teammate.answered", "a call's result is in the transcript"},
}

// The points of files. Each kind of file in documents has all points of ofDocuments, and so on.
var (
	documents = []string{"tasks", "members", "requests", "hosts", "team", "lanes", "damaged", "archive", "checks",
		"registry", "memory", "receipts", "places"}
	streams = []string{"events", "claim_events", "lane_events", "transcripts", "inbox", "spend", "rejected",
		"torn"}
	moved = []string{"events", "lane_events", "tasks", "transcripts", "team", "archive"}

	ofDocuments = []Point{
		{"put.begin", "nothing of the new content"},
		{"put.staged", "the new content, under a name of its own; the old one has the document's name"},
		{"put.compared", "the same; the old one was compared for the second time"},
		{"put.renamed", "the new content has the name; the directory is not synced"},
		{"put.end", "all of it"},
		{"remove.begin", "the document is there, or what a killed process has staged"},
		{"remove.end", "it is gone"},
	}
	ofStreams = []Point{
		{"append.begin", "nothing of the new lines"},
		{"append.written", "the lines are written and not synced"},
		{"append.end", "all of it"},
	}
	ofSegments = []Point{
		{"inbox.move.begin", "the live file has its name; the mail is in the transcript"},
		{"inbox.move.moved", "the live file is a segment; the directories are not synced"},
		{"inbox.move.end", "all of it"},
		{"segments.cut.begin", "the delivered segment is whole"},
		{"segments.cut.end", "the delivered segment is empty"},
		{"segments.remove.begin", "the delivered segment is there"},
		{"segments.remove.end", "the delivered segment is gone"},
		{"segments.move.begin", "the segment's name says how much of it was delivered before"},
		{"segments.move.moved", "its name says how much is delivered; the directory is not synced"},
		{"segments.move.end", "all of it"},
	}
	ofMoved = []Point{ // files that are moved whole: a full journal file, what an archive has, what a repair replaces
		{"move.begin", "it has its name"},
		{"move.moved", "it has its new name; the directories are not synced"},
		{"move.end", "all of it"},
	}
)

// Places returns the points that the code names in full. The names of all others are made of a kind of file and a step.
func Places() []Point { return slices.Clone(places) }

// Points returns all points, sorted by name.
func Points() []Point {
	all := slices.Concat(places, ofSegments)
	for kinds, steps := range map[*[]string][]Point{&documents: ofDocuments, &streams: ofStreams, &moved: ofMoved} {
		for _, kind := range *kinds {
			for _, s := range steps {
				all = append(all, Point{kind + "." + s.Name, s.Durable})
			}
		}
	}
	slices.SortFunc(all, func(a, b Point) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lines returns the list as docs/reliability.md has it. It gives the points of documents and streams once for all
// kinds.
func Lines() []string {
	all := []string{"DOCUMENT is one of " + strings.Join(documents, ", ") + ".", "STREAM is one of " +
		strings.Join(streams, ", ") + ".",
		"MOVED is one of " + strings.Join(moved, ", ") + "."}
	for _, g := range []struct {
		before string
		points []Point
	}{{"DOCUMENT.", ofDocuments}, {"STREAM.", ofStreams}, {"MOVED.", ofMoved}, {"", ofSegments}, {"", places}} {
		for _, p := range g.points {
			all = append(all, "| `"+g.before+p.Name+"` | "+p.Durable+" |")
		}
	}
	return all
}

// Known reports whether there is a point of that name.
func Known(name string) bool {
	return slices.ContainsFunc(Points(), func(p Point) bool { return p.Name == name })
}
