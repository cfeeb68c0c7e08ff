// Package view turns records and events into words for people: it knows how things look, not how they are stored, asked
// for or changed. It reads no clock, no file and no flag.
//
// Read in this order: paint.go, table.go and duration.go (colours, columns, times), lines.go and fit.go (an event as
// lines), presence.go and progress.go (a run as it goes), tally.go and summary.go (its end), overview.go (how it
// stands), tree.go, task.go and request.go (records).
package view
