#!/usr/bin/env bash
# Formats, lints, runs all tests with the race detector, and vets and builds for other systems.
# Needs Go, git and a C compiler (for the race detector), and tmux, git-lfs, git-crypt, bubblewrap and Chromium (what
# tests them is skipped where they are missing); fetches the rest itself. ARTIFACTS=DIR keeps pictures of the page in the
# browser there.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$1"; }

# The tests sync many small files. That takes milliseconds on a disk and nothing in memory. What a loss of power leaves is
# tested on simulated disks. Some systems have little memory there, or run no programs from it.
free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }') || free=0
if [ -z "${TMPDIR:-}" ] && [ "${free:-0}" -gt 6000000 ] && memory=$(mktemp -d /dev/shm/muster-XXXXXX); then
  trap 'rm -rf "$memory"' EXIT
  printf '#!/bin/sh\n' >"$memory/try" && chmod +x "$memory/try"
  if "$memory/try" 2>/dev/null; then export TMPDIR=$memory; fi
fi

step "format"
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
  printf 'not formatted (gofmt -w FILE):\n%s\n' "$unformatted" >&2
  exit 1
fi

# The linters and the tests have failpoints, so that no test is left out. What people install has none.
tags=failpoint

step "limits and layers"
go test -count=1 ./internal/limits ./internal/importtest # they fail most often, and take seconds

step "lint"
# vet, staticcheck, errcheck, errorlint, unparam, contextcheck and the comments of exported names: see .golangci.yml.
go tool -modfile=tools/go.mod golangci-lint run --build-tags "$tags" ./...
# Only these packages differ without failpoints. A plain "go test ./..." compiles too.
go vet $(git grep -l '^//go:build .*failpoint' -- '*.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')

step "tests"
race=-race
if ! command -v "${CC:-cc}" >/dev/null 2>&1; then
  if [ "${CI:-}" = true ]; then
    echo "no C compiler: the race detector needs one (Debian: apt-get install gcc)" >&2
    exit 1
  fi
  echo "no C compiler here: the tests run without the race detector"
  race=
fi
if [ "${CI:-}" = true ]; then # these are tested with the real programs
  for program in tmux git-lfs git-crypt ssh-keygen chromium bwrap; do
    package=$program
    [ "$program" = ssh-keygen ] && package=openssh-client
    [ "$program" = bwrap ] && package=bubblewrap
    command -v "$program" >/dev/null ||
      (apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package") >/dev/null
  done
fi
export GOGC=400 # collecting garbage less often saves a fifth of the time
# A program with the race detector sleeps for a second at its end, lest another thread is about to report a race.
export GORACE=atexit_sleep_ms=0
# golangci-lint has run vet.
go test -tags "$tags" $race -count=1 -vet=off -timeout 60m ${ARTIFACTS:+-artifacts -outputdir "$ARTIFACTS"} ./...
if [ -n "$race" ]; then # of what these try in thousands of cases, the race detector has seen a sample
  go test -tags "$tags" -count=1 -vet=off \
    $(git grep -l 'race\.InSample' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')
fi
go test -count=1 ./internal/testing/torture -run NeedsFailpoints # in a build without failpoints

step "simulation"
# Whole teams in simulated time: 1,000 seeds on a stand-in for git, some on git itself; without the race detector, which had its
# seeds above.
go test -tags "$tags" -count=1 ./team -run 'TestSimulation$' -sim.seeds=1000
go test -tags "$tags" -count=1 ./team -run 'TestSimulation$' -sim.seeds=20 -sim.first=2000 -sim.git
# Teams whose models are clumsy; docs/reliability.md has the command for 1,000.
go test -tags "$tags" -count=1 ./team -run 'TestClumsyTeams$' -clumsy.seeds=300

step "vet and build for darwin and windows"
GOOS=linux GOARCH=amd64 go build -o /dev/null ./cmd/muster
for target in darwin/arm64 windows/amd64; do
  export GOOS=${target%/*} GOARCH=${target#*/}
  go vet ./...
  go build -o /dev/null ./cmd/muster
done
