package conntrack

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/sysctl"
)

// values is a Tree in memory that counts what is done to it.
type values struct {
	has           map[string]string
	refuses       map[string]error // by name, of writes
	hides         map[string]error // by name, of reads
	reads, writes int
}

func (v *values) Read(name string) (string, error) {
	v.reads++
	if err := v.hides[name]; err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", name, err)
	}
	value, ok := v.has[name]
	if !ok {
		return "", fmt.Errorf("read sysctl %s: %w", name, syscall.ENOENT)
	}
	return value, nil
}

func (v *values) Write(name, value string) (bool, error) {
	v.writes++
	if err := v.refuses[name]; err != nil {
		return false, fmt.Errorf("set sysctl %s: %w", name, err)
	}
	v.has[name] = value
	return true, nil
}

// applier returns an Applier for a node of one CPU, and what it logs.
func applier(t *testing.T, l Limits, sysctls, sysfs Tree) (*Applier, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	a, err := NewApplier(ApplierOptions{Limits: l, Cores: 1, Sysctls: sysctls, Sysfs: sysfs, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	return a, logs
}

func warnings(logs *observer.ObservedLogs) []observer.LoggedEntry {
	return logs.FilterLevelExact(zapcore.WarnLevel).All()
}

func wantUnwritable(t *testing.T, a *Applier, want ...Unwritable) {
	t.Helper()
	if diff := cmp.Diff(want, a.Unwritable()); diff != "" {
		t.Errorf("unwritable, -want +got:\n%s", diff)
	}
}

func TestApplyWritesWhatDiffers(t *testing.T) {
	l := Limits{MaxPerCore: 1048576, TCPBeLiberal: true,
		TCPEstablishedTimeout: 24 * time.Hour, TCPCloseWaitTimeout: time.Hour, UDPTimeout: time.Second, UDPStreamTimeout: time.Minute}
	want := map[string]string{tableMax: "1048576", buckets: "262144", tcpBeLiberal: "1",
		tcpEstablishedTimeout: "86400", tcpCloseWaitTimeout: "3600", udpTimeout: "1", udpStreamTimeout: "60"}
	v := &values{has: map[string]string{tableMax: "262144", buckets: "65536", tcpBeLiberal: "0",
		tcpEstablishedTimeout: "432000", tcpCloseWaitTimeout: "60", udpTimeout: "30", udpStreamTimeout: "120"}}
	a, logs := applier(t, l, v, &values{})
	a.Apply()
	if diff := cmp.Diff(want, v.has); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := logs.FilterMessage("connection tracking: setting changed").Len(); got != 7 || logs.Len() != 7 {
		t.Errorf("%d changes logged in %d entries, want 7", got, logs.Len())
	}
	wantUnwritable(t, a)

	other, _ := applier(t, l, v, &values{})
	writes := v.writes
	other.Apply()
	if v.writes != writes {
		t.Errorf("%d writes of values that are there", v.writes-writes)
	}
}

func TestApplyCostsNothingOnceAllIsSettled(t *testing.T) {
	v := &values{
		has:     map[string]string{tableMax: "4", udpTimeout: "30"},
		refuses: map[string]error{tableMax: syscall.EACCES},
	}
	sysfs := &values{has: map[string]string{hashSize: "1"}}
	a, _ := applier(t, Limits{MaxPerCore: 8, UDPTimeout: time.Second}, v, sysfs)
	a.Apply()
	reads, writes := v.reads+sysfs.reads, v.writes+sysfs.writes
	v.has[udpTimeout] = "77" // by somebody else
	a.Apply()
	if v.reads+sysfs.reads != reads || v.writes+sysfs.writes != writes || v.has[udpTimeout] != "77" {
		t.Errorf("%d reads and %d writes more; udp timeout %s", v.reads+sysfs.reads-reads, v.writes+sysfs.writes-writes, v.has[udpTimeout])
	}
}

func TestLimitsAreNeverLowered(t *testing.T) {
	for name, now := range map[string]string{"higher": "2000000", "as wanted": "1048576", "no limit": "0"} {
		forbidden := map[string]error{tableMax: syscall.EACCES, buckets: syscall.EACCES}
		v := &values{has: map[string]string{tableMax: now, buckets: "2000000"}, refuses: forbidden}
		a, logs := applier(t, Limits{MaxPerCore: 1048576}, v, &values{})
		a.Apply()
		if v.writes != 0 || v.has[tableMax] != now || logs.Len() != 0 {
			t.Errorf("%s: %d writes, %d lines logged, now %s", name, v.writes, logs.Len(), v.has[tableMax])
		}
		wantUnwritable(t, a)
	}
}

func TestNothingPerCoreLeavesLimitsAlone(t *testing.T) {
	v := &values{has: map[string]string{tableMax: "1", buckets: "1"}}
	a, _ := applier(t, Limits{Min: 655350}, v, v)
	a.Apply()
	if v.reads+v.writes != 0 {
		t.Errorf("%d reads, %d writes", v.reads, v.writes)
	}
}

func TestUnwritableSettingCostsOneWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		want   Reason
		advice string
	}{
		"read-only":         {fmt.Errorf("%w: %w", sysctl.ErrReadOnly, syscall.EROFS), ReadOnly, "mount it writable"},
		"no access":         {syscall.EACCES, Forbidden, "the node's own network namespace"},
		"no permission":     {syscall.EPERM, Forbidden, "CAP_NET_ADMIN"},
		"another namespace": {syscall.EOPNOTSUPP, Forbidden, "network namespace"},
		"not accepted":      {syscall.EINVAL, Refused, "configure"},
		"no memory":         {syscall.ENOMEM, Failed, "set the value"},
	} {
		v := &values{has: map[string]string{tableMax: "262144", udpTimeout: "30"}, refuses: map[string]error{tableMax: tc.err}}
		a, logs := applier(t, Limits{MaxPerCore: 1048576, UDPTimeout: time.Second}, v, &values{has: map[string]string{hashSize: "262144"}})
		for range 3 {
			a.Apply()
		}
		wantUnwritable(t, a, Unwritable{Setting: tableMax, Wanted: 1048576, Current: "262144", Reason: tc.want})
		if v.has[udpTimeout] != "1" {
			t.Errorf("%s: the other setting is %s", name, v.has[udpTimeout])
		}
		warned := warnings(logs)
		if len(warned) != 1 {
			t.Fatalf("%s: %d warnings, want 1: %v", name, len(warned), warned)
		}
		fields := warned[0].ContextMap()
		if !strings.Contains(fields["error"].(string), tc.err.Error()) || !strings.Contains(fields["advice"].(string), tc.advice) {
			t.Errorf("%s: %v", name, fields)
		}
		delete(fields, "error")
		delete(fields, "advice")
		if diff := cmp.Diff(map[string]any{"setting": tableMax, "current": "262144", "wanted": int64(1048576)}, fields); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestASettingThatIsPutRightIsNotUnwritableAnyMore(t *testing.T) {
	for name, right := range map[string]func(sysctls, sysfs *values){
		"where it belongs":    func(sysctls, _ *values) { sysctls.has[buckets] = "262144" },
		"in the other place":  func(_, sysfs *values) { sysfs.has[hashSize] = "262144" },
		"to more than enough": func(sysctls, _ *values) { sysctls.has[buckets] = "1000000" },
	} {
		refuse := syscall.EACCES
		sysctls := &values{has: map[string]string{tableMax: "1048576", buckets: "1024"}, refuses: map[string]error{buckets: refuse}}
		sysfs := &values{has: map[string]string{hashSize: "1024"}, refuses: map[string]error{hashSize: refuse}}
		a, _ := applier(t, Limits{MaxPerCore: 1048576}, sysctls, sysfs)
		a.Apply()
		if got := a.Unwritable(); len(got) != 1 {
			t.Fatalf("%s: unwritable are %v, want one", name, got)
		}
		right(sysctls, sysfs)
		wantUnwritable(t, a)
	}
}

func TestUnreadableSettingIsUnwritable(t *testing.T) {
	v := &values{hides: map[string]error{udpTimeout: syscall.EACCES}}
	a, logs := applier(t, Limits{UDPTimeout: time.Second}, v, v)
	a.Apply()
	wantUnwritable(t, a, Unwritable{Setting: udpTimeout, Wanted: 1, Reason: Forbidden})
	if v.writes != 0 || len(warnings(logs)) != 1 {
		t.Errorf("%d writes, %v", v.writes, logs.All())
	}
}

func TestHashTableHasTwoWays(t *testing.T) {
	readOnly := map[string]error{buckets: syscall.EROFS, hashSize: syscall.EROFS}
	small := map[string]string{buckets: "512", hashSize: "512"}
	failed := func(name string) []Unwritable {
		return []Unwritable{{Setting: name, Wanted: 1024, Current: "512", Reason: ReadOnly}}
	}
	for name, tc := range map[string]struct {
		sysctls, sysfs values
		want           map[string]string // of both
		failed         []Unwritable
	}{
		"both":                    {values{has: small}, values{has: small}, map[string]string{buckets: "1024", hashSize: "512"}, nil},
		"sysfs is read-only":      {values{has: small}, values{has: small, refuses: readOnly}, map[string]string{buckets: "1024", hashSize: "512"}, nil},
		"sysctls are read-only":   {values{has: small, refuses: readOnly}, values{has: small}, map[string]string{buckets: "512", hashSize: "1024"}, nil},
		"no such sysctl":          {values{}, values{has: small}, map[string]string{hashSize: "1024"}, nil},
		"no sysfs":                {values{has: small, refuses: readOnly}, values{}, map[string]string{buckets: "512"}, failed(buckets)},
		"both are read-only":      {values{has: small, refuses: readOnly}, values{has: small, refuses: readOnly}, small, failed(buckets)},
		"only a read-only one":    {values{}, values{has: small, refuses: readOnly}, map[string]string{hashSize: "512"}, failed(hashSize)},
		"no right to read sysfs":  {values{has: small, refuses: readOnly}, values{hides: map[string]error{hashSize: syscall.EACCES}}, map[string]string{buckets: "512"}, failed(buckets)},
		"rounded up by the other": {values{has: map[string]string{buckets: "1536"}}, values{}, map[string]string{buckets: "1536"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.sysctls.has, tc.sysfs.has = only(tc.sysctls.has, buckets), only(tc.sysfs.has, hashSize)
			tc.sysctls.has[tableMax] = "1024"
			a, logs := applier(t, Limits{MaxPerCore: 4096}, &tc.sysctls, &tc.sysfs)
			a.Apply()
			wantUnwritable(t, a, tc.failed...)
			if got := len(warnings(logs)); got != len(tc.failed) {
				t.Errorf("%d warnings, want %d", got, len(tc.failed))
			}
			tc.want = maps.Clone(tc.want)
			tc.want[tableMax] = "4096"
			maps.Copy(tc.sysctls.has, tc.sysfs.has)
			if diff := cmp.Diff(tc.want, tc.sysctls.has); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// only returns what m has of a name.
func only(m map[string]string, name string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(k, _ string) bool { return k != name })
	if m == nil {
		m = make(map[string]string)
	}
	return m
}

func TestAbsentSettingIsSetOnceItAppears(t *testing.T) {
	tree := sysctl.Tree{Root: t.TempDir()}
	a, logs := applier(t, Limits{MaxPerCore: 8, UDPTimeout: time.Second}, tree, sysctl.Tree{Root: t.TempDir()})
	a.Apply()
	if logs.Len() != 0 {
		t.Errorf("logged at first: %v", logs.All())
	}
	wantUnwritable(t, a)

	put(t, tree, tableMax, "4")
	put(t, tree, buckets, "1")
	put(t, tree, udpTimeout, "30")
	a.Apply()
	for name, want := range map[string]string{tableMax: "8", buckets: "2", udpTimeout: "1"} {
		if got, err := tree.Read(name); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %s", name, got, err, want)
		}
	}
	if len(warnings(logs)) != 0 {
		t.Errorf("warned: %v", warnings(logs))
	}
}

func TestSettingThatStaysAbsentIsReportedUntilItAppears(t *testing.T) {
	tree := sysctl.Tree{Root: t.TempDir()}
	a, logs := applier(t, Limits{MaxPerCore: 8}, tree, sysctl.Tree{Root: t.TempDir()})
	for range 4 {
		a.Apply()
	}
	wantUnwritable(t, a,
		Unwritable{Setting: buckets, Wanted: 2, Reason: Absent},
		Unwritable{Setting: tableMax, Wanted: 8, Reason: Absent})
	if got := len(warnings(logs)); got != 2 {
		t.Errorf("%d warnings, want one for each: %v", got, warnings(logs))
	}

	put(t, tree, tableMax, "4")
	put(t, tree, buckets, "2")
	a.Apply()
	wantUnwritable(t, a)
}

func TestSettingThatAppearsUnwritableIsGivenUp(t *testing.T) {
	v := &values{has: map[string]string{}, refuses: map[string]error{udpTimeout: syscall.EROFS}}
	a, logs := applier(t, Limits{UDPTimeout: time.Second}, v, v)
	a.Apply()
	v.has[udpTimeout] = "30"
	for range 3 {
		a.Apply()
	}
	wantUnwritable(t, a, Unwritable{Setting: udpTimeout, Wanted: 1, Current: "30", Reason: ReadOnly})
	if v.writes != 1 || len(warnings(logs)) != 1 {
		t.Errorf("%d writes, %v", v.writes, warnings(logs))
	}
}

func TestLiberalIsTheKernelsValueOrElseTheWantedOne(t *testing.T) {
	for name, tc := range map[string]struct {
		values values
		wanted bool
		want   bool
	}{
		"strict":                      {values{has: map[string]string{tcpBeLiberal: "0"}}, false, false},
		"liberal already":             {values{has: map[string]string{tcpBeLiberal: "1"}}, false, true},
		"wanted":                      {values{has: map[string]string{tcpBeLiberal: "0"}}, true, true},
		"wanted and there":            {values{has: map[string]string{tcpBeLiberal: "1"}}, true, true},
		"wanted and refused":          {values{has: map[string]string{tcpBeLiberal: "0"}, refuses: map[string]error{tcpBeLiberal: syscall.EROFS}}, true, false},
		"wanted before it is there":   {values{}, true, true},
		"unwanted before it is there": {values{}, false, false},
		"unreadable":                  {values{hides: map[string]error{tcpBeLiberal: syscall.EACCES}}, true, false},
	} {
		a, _ := applier(t, Limits{TCPBeLiberal: tc.wanted}, &tc.values, &tc.values)
		a.Apply()
		if got := a.Liberal(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// put makes a file with a value.
func put(t *testing.T, tree sysctl.Tree, name, value string) {
	t.Helper()
	path := filepath.Join(tree.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeReadOnly makes a folder read-only until t ends.
func makeReadOnly(t *testing.T, dir string) {
	t.Helper()
	if err := mountReadOnly(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// mountReadOnly mounts a folder on itself.
func mountReadOnly(dir string) error {
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func TestReadOnlyFilesAreCompared(t *testing.T) {
	tree, sysfs := sysctl.Tree{Root: t.TempDir()}, sysctl.Tree{Root: t.TempDir()}
	put(t, tree, tableMax, "2000000")
	put(t, tree, udpTimeout, "30")
	put(t, tree, udpStreamTimeout, "120")
	put(t, sysfs, hashSize, "65536")
	makeReadOnly(t, tree.Root)
	makeReadOnly(t, sysfs.Root)

	a, logs := applier(t, Limits{MaxPerCore: 1048576, UDPTimeout: 30 * time.Second, UDPStreamTimeout: time.Minute}, tree, sysfs)
	a.Apply()
	wantUnwritable(t, a,
		Unwritable{Setting: hashSize, Wanted: 262144, Current: "65536", Reason: ReadOnly},
		Unwritable{Setting: udpStreamTimeout, Wanted: 60, Current: "120", Reason: ReadOnly})
	if got := len(warnings(logs)); got != 2 {
		t.Errorf("%d warnings, want 2: %v", got, warnings(logs))
	}
}

func TestLimitIsRaisedThoughTheHashTableIsReadOnly(t *testing.T) {
	tree, sysfs := sysctl.Tree{Root: t.TempDir()}, sysctl.Tree{Root: t.TempDir()}
	put(t, tree, tableMax, "262144")
	put(t, sysfs, hashSize, "65536")
	makeReadOnly(t, sysfs.Root)
	a, _ := applier(t, Limits{MaxPerCore: 1048576}, tree, sysfs)
	a.Apply()
	if got, err := tree.Read(tableMax); got != "1048576" || err != nil {
		t.Errorf("the limit is %s, %v", got, err)
	}
	wantUnwritable(t, a, Unwritable{Setting: hashSize, Wanted: 262144, Current: "65536", Reason: ReadOnly})
}

func TestErrorsOfTheSeamHaveTheReasonsOfTheKernel(t *testing.T) {
	for _, err := range []error{fs.ErrNotExist, syscall.ENOENT} {
		if got := why(fmt.Errorf("read sysctl x: %w", err)).reason; got != Absent {
			t.Errorf("%v: %s", err, got)
		}
	}
	if got := why(errors.New("anything")).reason; got != Failed {
		t.Errorf("anything: %s", got)
	}
}
