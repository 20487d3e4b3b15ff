package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// knobs are the settings that forbid namespaces, each with the value at which
// it does and what to write instead. A kernel has only some of them: the first
// three are Linux's (kernel/ucount.c, 6.18), then come Debian's and Ubuntu's.
var knobs = []struct{ path, forbids, instead string }{
	{"/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/user/max_net_namespaces", "0", "sysctl -w user.max_net_namespaces=15000"},
	{"/proc/sys/user/max_mnt_namespaces", "0", "sysctl -w user.max_mnt_namespaces=15000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
}

// explained says what to do where err is that namespaces may not be made, or
// may not be used once made, as AppArmor has it.
func explained(err error) error {
	if !errors.Is(err, lab.ErrForbidden) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	advice := forbidding(os.ReadFile)
	if len(advice) == 0 {
		advice = []string{"No setting below /proc/sys says so: it is a security policy, such as the seccomp profile of a container."}
	}
	advice = append(advice, "Root needs no user namespace: sudo ./nlproxy demo, or sudo go run ./cmd/nlproxy demo.",
		"A container in which it is to run has to be privileged.")
	return fmt.Errorf("%w\n  %s", err, strings.Join(advice, "\n  "))
}

// forbidding returns a sentence about each knob that forbids namespaces now.
func forbidding(read func(string) ([]byte, error)) (sentences []string) {
	for _, k := range knobs {
		value, err := read(k.path)
		if err == nil && strings.TrimSpace(string(value)) == k.forbids {
			sentences = append(sentences, fmt.Sprintf("%s is %s. As root: %s", k.path, k.forbids, k.instead))
		}
	}
	return sentences
}
