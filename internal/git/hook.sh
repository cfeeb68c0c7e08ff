#!/bin/sh
# A hook of the git that muster's agents run. It refuses to move refs that are not the agent's, and then runs the hook of
# the same name of the repository, if that has one.
name=${0##*/} common=@COMMON@ target=@TARGET@ hooks=@HOOKS@ shared=@SHARED@ mine= input= here=$PWD

# Another repository than the team's, such as one that a test makes, keeps its own hooks and all its refs.
dir=${GIT_DIR:-.git}
[ -f "$dir" ] && read -r line dir <"$dir" # a file that says "gitdir: DIR"
if cd -P -- "$dir" 2>/dev/null; then
	dir=$PWD
	# The git directory of a lane's commands has refs of its own, which are theirs to move.
	case $dir/ in "$common"/muster/places/*) mine=place ;; "$common"/*) mine=1 ;; esac
	cd -P -- "$here" || exit 1
fi

# isPlain tells that no config which the repository has can name another directory for its hooks.
isPlain() {
	while read -r line || [ -n "$line" ]; do
		case $line in
		*[hH][oO][oO][kK][sS][pP]* | *[iI][nN][cC][lL][uU][dD][eE]* | *[tT][rR][eE][eE][cC][oO][nN]*) return 1 ;;
		esac
	done
}
if [ -z "$mine" ]; then
	# A commit runs ten hooks, so git is asked only where the answer is not plain.
	if [ -z "$shared" ] && [ -f "$dir/config" ] && isPlain <"$dir/config"; then
		hooks=$dir/hooks
	else
		hooks=$(unset GIT_CONFIG_COUNT && git rev-parse --git-path hooks 2>/dev/null) || exit 0
	fi
fi
case $hooks in /*) ;; *) hooks=$here/$hooks ;; esac
hook=$hooks/$name

# canRun reports whether the hook is there, and a sandbox does not hide it.
canRun() { [ -x "$hook" ] && (: <"$hook") 2>/dev/null; }

# isPacking tells what pack-refs does, and so every gc: it writes a ref as it is to packed-refs, and then removes the
# file.
isPacking() {
	at=
	case $new in
	*[!0]*) [ -f "$common/$ref" ] && read -r at <"$common/$ref" && [ "$at" = "$new" ] ;;
	*) grep -qxF "$old $ref" "$common/packed-refs" 2>/dev/null ;;
	esac
}

refuse() {
	isPacking && return
	echo "muster: an agent's git may not change $1: $2" >&2
	exit 1
}
case $mine$name in
# While anybody has the target checked out no landing may move it.
1post-checkout)
	if read -r at <"$dir/HEAD" && [ "$at" = "ref: $target" ] && git update-ref --no-deref HEAD "$2"; then
		echo "muster: HEAD is detached here: only complete_task moves ${target#refs/heads/}" >&2
	fi
	;;
*reference-transaction)
	while read -r old new ref; do
		input="$input$old $new $ref
"
		[ "$mine" = 1 ] && [ "$1" = prepared ] && [ "$old" != "$new" ] || continue
		case $ref in
		# A member without a lane may tidy up for its user after all work has landed. While any is open, the target is
		# put back.
		"$target") [ "$MUSTER_LANE_REF" = none ] || refuse "$ref" "only complete_task lands work there" ;;
		refs/stash) refuse "$ref" "all lanes share the stash; commit in your lane instead" ;;
		refs/muster/* | refs/replace/*) refuse "$ref" "it is not yours" ;;
		"$MUSTER_LANE_REF") ;;
		refs/heads/wt/*) refuse "$ref" "it is another lane's branch" ;;
		esac
	done
	canRun || exit 0
	printf %s "$input" | "$hook" "$@"
	exit $?
	;;
esac
canRun || exit 0
exec "$hook" "$@"
