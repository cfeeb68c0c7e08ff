// Package view turns records and events into text for people. It knows how things look, but not how they are stored,
// requested or changed. It reads no clock, file or flag: times, widths and lookups are arguments.
//
// The main types:
//
//   - Line: one event in words; Lines makes them, Line.Append lays one out
//   - Progress: a run while it goes on, with the living members (Presence) below the lines
//   - Tally and Summary: what a run took, and its end
//   - Overview: how a team stands
//   - Table, Paint: columns and colours for all of the above
//
// Text that models or foreign programs wrote goes through OneLine or ManyLines before it is printed, so that it cannot
// steer a terminal. A colour is never the only sign of anything.
package view
