#!/bin/bash
# Makes the pictures of a terminal anew: demo.svg, run.svg, status.svg, watch.svg and conversation.svg. The program is
# real; its models are scripted, in team.yaml and in "muster demo". It takes some minutes, and needs Go, git and
#	apt-get install asciinema tmux
#	npm install svg-term-cli    # in a directory outside of the repository; run this script there, for npx to find it
set -eu
images=$(cd "$(dirname "$0")" && pwd) start=$PWD at=$(mktemp -d) scene=
tm() { tmux -u -S "$at/$scene.socket" -f /dev/null "$@"; }
trap 'tm kill-server; rm -rf "$at"' EXIT
(cd "$images" && go build -o "$at/bin/" muster/cmd/muster)
export GOCACHE="$(go env GOCACHE)" GOMODCACHE="$(go env GOMODCACHE)" PATH="$at/bin:$PATH" TERM=xterm-256color LC_ALL=C.UTF-8
export HOME="$at" XDG_CONFIG_HOME="$at" XDG_STATE_HOME="$at/state" TZ=UTC MUSTER_MODEL=script/../team.yaml
unset TMUX NO_COLOR ANTHROPIC_API_KEY OPENAI_API_KEY
git config --global user.name you && git config --global user.email you@example.org

shell="env 'PS1=$ ' bash --norc" # a bash between them would forget PS1
line() { see '\$ *$' && tm send-keys -l "$1" && tm send-keys Enter; } # types a command at the prompt
see() { # waits until the screen fits a pattern
	for ((i = 0; i < 3000; i++)); do [[ $(tm capture-pane -p) =~ $1 ]] && return; sleep 0.2; done
	echo "the screen never showed $1:" >&2 && tm capture-pane -p >&2 && exit 1
}
svg() { (cd "$start" && npx svg-term --in "$at/$1.cast" --out "$images/$1.svg" --width 100 --padding 14 --no-cursor "${@:2}"); }
still() { # draws the screen, once it fits a pattern: as tmux prints it, because svg-term knows few sequences
	see "$2" && printf %s "$(tm capture-pane -pe)" >"$at/screen"
	asciinema rec -q --cols 100 --rows $(($(wc -l <"$at/screen") + 1)) -c "cat '$at/screen'; sleep 1" "$at/$1.cast" && svg "$1" --at 9999999
}
repository() { # opens a terminal in a new repository
	[ -z "$scene" ] || tm kill-server
	scene=$1 && mkdir -p "$at/$1/words" && cd "$at/$1/words" && cp "$images/team.yaml" .. && git init -q -b main
	printf 'module words\n\ngo 1.26\n' >go.mod && printf '// Package words counts words.\npackage words\n' >words.go
	git add . && git commit -q -m start && tm new-session -d -x 100 -y 30 "${2:-$shell}"
}

repository run && line 'muster run "count the words of big files" --check "go test ./..."'
still run 'lands .*takes  3 counter.*bash go test.*y +yes'
tm new-window "$shell" && line "muster status" && still status 'NEEDS YOU.*\$ *$'
line "muster watch" && still watch 'NEEDS YOU.*1\. Read'
repository talk && line 'muster --check "go test ./..."' && see 'rights.*>' && tm send-keys "count the words of big files" Enter
still conversation 'asks +plan for.*takes  3 counter.*bash go test.*y +yes'
repository demo "asciinema rec -q -i 1.5 -c \"$shell\" '$at/demo.cast'" && line "muster demo" && see 'see it all:.*\$ *$' && svg demo
