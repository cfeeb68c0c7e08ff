// Package confined starts the programs of a team inside a sandbox: the commands of members, the set-up and the check.
// What confines them is internal/sandbox; here is what each of them may touch.
//
//   - Members (member.go) is a launcher for the commands of members. They write in a lane, and git in a lane writes to
//     a place of the lane's own, from which muster takes over what may become the repository's.
//   - Checks (check.go) is a launcher for the check and the set-up. They write in the checkout of the check, and the
//     set-up may download.
//   - Own (own.go) starts programs of muster's own where those have written.
//
// All have what place.go says: the system, the toolchains and the repository to read, and caches of their own
// (environ.go), because what a member could leave in a cache of the user's would be taken by what the user runs.
//
// The package keeps these invariants:
//
//   - Nothing that a member has written runs with the user's rights: neither its commands nor what they leave behind
//     for a check.
//   - No program sees the state of the team, another lane, the user's settings or the rest of the home directory.
//   - What a confined program keeps for a later one is kept for one repository. Members and checks share nothing that
//     either can write: a member could leave the result of a test there that never ran.
package confined

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"

	"muster/internal/proc"
	"muster/internal/sandbox"
)

// Network says which hosts programs may reach, and whom to tell of one that was refused.
type Network struct {
	// Hosts are names, as sandbox.StartProxy knows them.
	Hosts []string
	// Setting is the name of the setting with the hosts.
	Setting string
	// Tell is told of each host that was refused, once.
	Tell func(host string)

	told sync.Map
}

// start starts a program, confined by the method if there is one.
func (p *Place) start(
	ctx context.Context, l proc.Launcher, s proc.Spec, rules sandbox.Rules, n *Network,
) (proc.Process, error) {
	if p.Method == nil {
		return l.Start(ctx, s)
	}
	s.Env = withoutSession(s.Env)
	s = withHome(s, p.Method, p.Home, rules)
	if len(n.Hosts) == 0 || !p.Method.HasNamespaces {
		return p.Method.Start(ctx, l, s, rules)
	}
	proxy, err := sandbox.StartProxy(n.Hosts)
	if err != nil {
		return nil, err
	}
	argv, more := proxy.Command(s.Argv)
	s.Argv = argv
	running, err := p.Method.Start(ctx, l, s, append(rules, more...))
	if err != nil {
		proxy.Close()
		return nil, err
	}
	return proc.Then(running, func(exit int, err error) (int, error) {
		n.tell(proxy, outOf(s))
		proxy.Close()
		return exit, err
	}), nil
}

// outOf returns the writer of a program's output. What muster adds to it comes after the end of the program.
func outOf(s proc.Spec) io.Writer { return cmp.Or[io.Writer](s.Out, io.Discard) }

// tell tells whoever reads the output of a program, and the user, once, which hosts were refused. Most programs say
// only that a proxy has refused something.
func (n *Network) tell(proxy *sandbox.Proxy, out io.Writer) {
	for _, host := range proxy.Refused() {
		_, _ = fmt.Fprintf(out, "[the network host %s was refused: only the user can allow it, with the setting %s]\n",
			host, n.Setting)
		if _, told := n.told.LoadOrStore(host, true); !told && n.Tell != nil {
			n.Tell(host)
		}
	}
}
