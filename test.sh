#!/usr/bin/env bash
# Tests muster.
#
#   ./test.sh           the first tier: what a change can break, in at most ten minutes on two cores
#   ./test.sh all       everything: all cases and seeds, the race detector everywhere, all systems, the benchmarks' module
#   ./test.sh missing   the Debian packages of the programs that are not installed, a line each
#
# The tests need Go, git and a C compiler (for the race detector). The first tier leaves out those of programs that are
# not installed, and says which; with CI=true, and in all, a missing program is an error. They print how long their steps
# took. ARTIFACTS=DIR keeps pictures of the page in the browser there.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
"" | missing) all= patience=30m ;;
all) all=yes patience=3h && export MUSTER_TESTS=all ;;
*) echo "usage: ./test.sh [all|missing]" >&2 && exit 2 ;;
esac

# The programs that tests use, each with its Debian package, or several of which one is enough.
for entry in "${CC:-cc}:gcc" tmux git-lfs git-crypt ssh-keygen:openssh-client chromium,chromium-browser,google-chrome:chromium \
  bwrap:bubblewrap /usr/bin/curl:curl /usr/bin/python3:python3 node:nodejs ps:procps; do
  package=${entry##*:} names=${entry%%:*} found=
  for name in ${names//,/ }; do command -v "$name" >/dev/null && found=yes; done
  [ -z "$found" ] || continue
  if [ "${1:-}" = missing ]; then
    echo "$package"
  elif [ -n "$all" ] || [ "${CI:-}" = true ] || [ "$package" = gcc ]; then
    echo "$names is missing (Debian: apt-get install $package)" >&2 && exit 1
  else
    echo "left out: what needs $names (Debian: apt-get install $package)"
  fi
done
[ "${1:-}" != missing ] || exit 0

# -trimpath lets clones in different directories share Go's caches of builds and tests.
export GOFLAGS="${GOFLAGS:-} -trimpath -buildvcs=false"
export GOGC=400                     # collecting garbage less often saves a fifth of the time
export GORACE=atexit_sleep_ms=0     # the race detector makes each program sleep for a second at its end otherwise
tags=failpoint                      # what people install has no failpoints
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# The tests sync many small files, which is quick in memory. What a loss of power leaves is tested on simulated disks. The
# path is the same in each run, because Go's test cache knows it, and is taken by one run at a time.
memory=/dev/shm/muster-tests-$(id -u)
free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }') || free=0
if [ -z "${TMPDIR:-}" ] && [ "${free:-0}" -gt 6000000 ] && exec 9>"$memory.lock" && flock -n 9 &&
  rm -rf "$memory" && mkdir -m 700 "$memory"; then
  trap 'rm -rf "$work" "$memory"' EXIT
  printf '#!/bin/sh\n' >"$memory/try" && chmod +x "$memory/try"
  if "$memory/try" 2>/dev/null; then export TMPDIR=$memory; fi # some systems run no programs from there
fi

# step NAME COMMAND... runs a step and notes how long it took. It ends the script when the step fails.
steps=()
step() {
  local name=$1 began=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  times >"$work/before"
  "$@" || status=$?
  times >"$work/after"
  steps+=("$(cat "$work/before" "$work/after" | awk -v name="$name" -v wall=$((SECONDS - began)) '
    function seconds(t) { split(t, p, /[ms]/); return 60 * p[1] + p[2] }
    NR % 2 == 0 { cpu = seconds($1) + seconds($2) - cpu } # of the ended children; the difference, in the end
    END { printf "%-44s %6d s %6d s", name, wall, cpu }')")
  if [ "$status" != 0 ]; then
    table
    printf '\nfailed: %s\n' "$name" >&2
    exit "$status"
  fi
}

table() {
  printf '\n%-44s %8s %8s\n' "step" "wall" "cpu"
  printf '%s\n' "${steps[@]}"
  printf '%-44s %6d s\n' "together" "$SECONDS"
}

format() {
  local unformatted
  unformatted=$(git ls-files -coz --exclude-standard '*.go' | xargs -0 gofmt -l)
  [ -z "$unformatted" ] || { printf 'not formatted (gofmt -w FILE):\n%s\n' "$unformatted" >&2 && return 1; }
}

lint() { go tool -modfile=tools/go.mod golangci-lint run --build-tags "$tags" ./...; }

build() { # SYSTEM/PROCESSOR...
  local target
  for target in "$@"; do
    GOOS=${target%/*} GOARCH=${target#*/} go build ./... || return
  done
}

vet() { # SYSTEM/PROCESSOR...
  local target
  for target in "$@"; do
    GOOS=${target%/*} GOARCH=${target#*/} go vet ./... || return
  done
}

# program builds the program that tests start, with the flags of "$@", and sets MUSTER_BIN. The hash in its path lets Go
# repeat tests when the program has changed.
program() {
  local dir=${XDG_CACHE_HOME:-$HOME/.cache}/muster-tests hash
  mkdir -p "$dir" && find "$dir" -mindepth 1 -maxdepth 1 -mtime +2 -exec rm -rf {} +
  go build -tags "$tags" "$@" -o "$work/muster" ./cmd/muster || return
  hash=$(git hash-object "$work/muster")
  mkdir -p "$dir/$hash" && mv "$work/muster" "$dir/$hash/muster" && export MUSTER_BIN=$dir/$hash/muster
}

# tests runs go test with the flags and packages of "$@". A test that hangs ends its package.
tests() { go test -tags "$tags" -vet=off -timeout "$patience" ${ARTIFACTS:+-artifacts -outputdir "$ARTIFACTS"} "$@"; }

# sharing lists the packages whose code shares memory between goroutines; others lists all packages but those of "$@".
sharing() {
  git grep --untracked -lE '^\s+go (func\(|[a-zA-Z_.]+\()|\.Go\(|sync\.(Mutex|RWMutex|WaitGroup|Cond|Map)|atomic\.' -- '*.go' ':!*_test.go' ':!bench' |
    xargs -n1 dirname | sort -u | sed 's,^,./,'
}
others() { go list ./... | sed 's,^muster$,.,; s,^muster/,./,' | grep -vxF -f <(printf '%s\n' "$@"); }

# bare runs the command of "$@" as on a machine without the programs that only some tests need.
bare() {
  mkdir "$work/bin"
  local dir
  for dir in ${PATH//:/ }; do ln -s "$dir"/* "$work/bin" 2>/dev/null || true; done # the first of each name counts
  (cd "$work/bin" && rm -f tmux git-lfs git-crypt ssh-keygen chromium* google-chrome* bwrap node)
  env -u MUSTER_TESTS -u MUSTER_BIN -u CI PATH="$work/bin" "$@"
}

git rev-parse --verify -q HEAD >/dev/null || { echo "this is no clone: the tests ask git which files there are" >&2 && exit 1; }
step "format" format
# Go's test cache does not know which files these two look at.
step "layers" go test -count=1 ./internal/importtest ./internal/limits
step "lint" lint
step "modules of bench" bash -c 'go -C bench list -deps -test ./... >/dev/null'
step "build for linux, darwin, windows" build linux/amd64 darwin/arm64 windows/amd64
step "build the program" program

if [ -z "$all" ]; then
  race=$(sharing)
  step "tests with the race detector" tests -race $race
  step "other tests" tests $(others $race)
  table
  exit
fi

# These tests fill the machine, or promise to end in time: they run one after the other, and without the race detector.
alone="./internal/hostile ./internal/proc ./internal/landlock ./internal/sandbox ./internal/cgroup"
step "tests, one package at a time" tests -p 1 $alone
step "tests with the race detector" tests -race $(others $alone ./internal/e2e)
step "build the program with the race detector" program -race
step "the whole program with the race detector" tests -race ./internal/e2e
step "go test alone, in another order" bare go test -shuffle=on ./...
step "torture" go run -tags "$tags" ./cmd/muster-torture
step "vet for all systems" vet linux/amd64 darwin/arm64 windows/amd64
step "build for more systems" build linux/arm64 darwin/amd64 windows/arm64
cd bench
step "bench: lint" go tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...
step "bench: tests" go test -vet=off -timeout 60m ./...
step "bench: every benchmark once" go test -timeout 60m -run '^$' -bench . -benchtime 1x ./...
table
