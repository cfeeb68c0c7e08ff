//go:build !race

package hostile

// hasRaceDetector says that the programs of the tests are built with -race.
const hasRaceDetector = false
