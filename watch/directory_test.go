package watch

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// folder is a directory of manifests that is scanned when told.
type folder struct {
	*directory
	t *testing.T
}

func newFolder(t *testing.T, o Options) folder {
	t.Helper()
	o = o.withDefaults()
	f := newFacts(o, kindDirectory)
	d, err := newDirectory(t.TempDir(), o, f, newReporter(o))
	must(t, err)
	return folder{d, t}
}

func (f folder) write(name, text string) {
	f.t.Helper()
	must(f.t, os.WriteFile(filepath.Join(f.path, name), []byte(text), 0o600))
}

// expect scans and compares the first port of each service, and all problems.
func (f folder) expect(services map[string]uint16, problems ...string) {
	f.t.Helper()
	f.read()
	s, ok := f.facts.snapshot()
	if !ok {
		f.t.Fatal("no snapshot")
	}
	if diff := cmp.Diff(services, firstPorts(s), compareFacts); diff != "" {
		f.t.Errorf("services (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(problems, texts(f.report.all()), compareFacts); diff != "" {
		f.t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestDirectoryWarnsOnceThatAllServicesAreGone(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	f := newFolder(t, Options{Logger: zap.New(core)})
	warned := func(times int) {
		t.Helper()
		if got := logged.FilterMessageSnippet("no manifest holds a Service any more").Len(); got != times {
			t.Errorf("warned %d times, want %d: %v", got, times, logged.All())
		}
	}
	f.expect(map[string]uint16{}) // as it always was
	f.write("a.yaml", web("a", 1)+web("b", 2))
	f.expect(map[string]uint16{"a": 1, "b": 2})
	f.write("a.yaml", web("b", 2))
	f.expect(map[string]uint16{"b": 2})
	warned(0)
	must(t, os.Remove(filepath.Join(f.path, "a.yaml")))
	f.expect(map[string]uint16{})
	f.expect(map[string]uint16{})
	warned(1)
}

func firstPorts(s model.Snapshot) map[string]uint16 {
	ports := map[string]uint16{}
	for svc := range s.Services.All() {
		ports[svc.Name.Name] = svc.Ports[0].Number
	}
	return ports
}

// web returns the manifest of a Service with one port.
func web(name string, port int) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {clusterIP: 10.96.0.10, ports: [{port: %d}]}\n", name, port)
}

func TestDirectoryReadsManifestsAndNothingElse(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1)+web("b", 2))
	f.write("c.yml", web("c", 3))
	f.write("d.json", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"d"},"spec":{"clusterIP":"10.96.0.10","ports":[{"port":4}]}}`)
	f.write("e.yaml", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: {name: e}\n  spec: {clusterIP: 10.96.0.10, ports: [{port: 5}]}\n")
	f.write("f.yaml", "apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: {name: f}\n  spec: {clusterIP: 10.96.0.10, ports: [{port: 6}]}\n")
	f.write("g.yaml", "apiVersion: apps/v1\nkind: Deployment\nspec: 7\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\n# nothing\n")
	f.write(".h.yaml", web("h", 8))
	f.write("i.yaml~", web("i", 9))
	must(t, os.Mkdir(filepath.Join(f.path, "j.yaml"), 0o700))
	f.expect(map[string]uint16{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6})
}

func TestDirectoryFollowsFilesThatComeChangeAndGo(t *testing.T) {
	f := newFolder(t, Options{})
	f.expect(nil)
	f.write("a.yaml", web("a", 1)+web("b", 2))
	f.write("c.yaml", web("c", 3))
	f.expect(map[string]uint16{"a": 1, "b": 2, "c": 3})
	f.write("a.yaml", web("a", 11))
	must(t, os.Remove(filepath.Join(f.path, "c.yaml")))
	f.expect(map[string]uint16{"a": 11})
}

func TestABadDocumentCostsOnlyItself(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1)+"---\nkind: [\n"+web("b", 0)+web("c", 3))
	f.expect(map[string]uint16{"a": 1, "c": 3},
		"a.yaml:7: yaml: line 7: did not find expected node content",
		"a.yaml:9: service default/b: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive")
}

func TestABadObjectStaysAsItWas(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1)+web("b", 2)+web("c", 3))
	f.expect(map[string]uint16{"a": 1, "b": 2, "c": 3})
	// Of an object that can be named only that one stays; what is not there any
	// more is gone.
	f.write("a.yaml", web("a", 11)+web("b", 0))
	bad := "a.yaml:7: service default/b: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"
	f.expect(map[string]uint16{"a": 11, "b": 2}, bad)
	f.write("a.yaml", web("a", 12)+web("b", 0)+"\n")
	f.expect(map[string]uint16{"a": 12, "b": 2}, bad)
	f.write("a.yaml", web("a", 12)+web("b", 22))
	f.expect(map[string]uint16{"a": 12, "b": 22})
}

func TestABrokenFileStaysAsItWas(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1)+web("b", 2))
	f.expect(map[string]uint16{"a": 1, "b": 2})
	f.write("a.yaml", web("a", 11)+"---\nkind: Service\n  metadata: {name: b}\n")
	f.expect(map[string]uint16{"a": 11, "b": 2}, "a.yaml:8: yaml: line 8: mapping values are not allowed in this context")
	f.write("a.yaml", web("a", 11))
	f.expect(map[string]uint16{"a": 11})
}

func TestAFileThatCannotBeReadStaysAsItWas(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1))
	f.expect(map[string]uint16{"a": 1})
	path := filepath.Join(f.path, "a.yaml")
	must(t, os.Remove(path))
	must(t, os.Symlink("a.yaml", path))
	f.expect(map[string]uint16{"a": 1}, "a.yaml: stat "+path+": too many levels of symbolic links")
	must(t, os.Remove(path))
	f.expect(nil)
}

func TestADirectoryThatCannotBeReadStaysAsItWas(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("a.yaml", web("a", 1))
	f.expect(map[string]uint16{"a": 1})
	away := f.path + ".away"
	must(t, os.Rename(f.path, away))
	f.expect(map[string]uint16{"a": 1},
		fmt.Sprintf("directory %s: read manifests: open %s: no such file or directory; what was read last stays", f.path, f.path))
	must(t, os.Rename(away, f.path))
	f.expect(map[string]uint16{"a": 1})
}

func TestOfTwoDefinitionsTheFirstFileCounts(t *testing.T) {
	f := newFolder(t, Options{})
	f.write("b.yaml", web("a", 2))
	f.expect(map[string]uint16{"a": 2})
	f.write("a.yaml", web("a", 1)+web("a", 11))
	f.expect(map[string]uint16{"a": 1},
		"a.yaml:7: service default/a: is already defined in line 2, which counts",
		"b.yaml:2: service default/a: is already defined in a.yaml, which counts")
	must(t, os.Remove(filepath.Join(f.path, "a.yaml")))
	f.expect(map[string]uint16{"a": 2})
}

func TestVolumesOfConfigMapsAreSwapped(t *testing.T) {
	f := newFolder(t, Options{})
	for i, version := range []string{"..2026_1", "..2026_2"} {
		must(t, os.Mkdir(filepath.Join(f.path, version), 0o700))
		f.write(filepath.Join(version, "a.yaml"), web("a", i+1))
	}
	must(t, os.Symlink("..2026_1", filepath.Join(f.path, "..data")))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(f.path, "a.yaml")))
	f.expect(map[string]uint16{"a": 1})
	must(t, os.Symlink("..2026_2", filepath.Join(f.path, "..data_tmp")))
	must(t, os.Rename(filepath.Join(f.path, "..data_tmp"), filepath.Join(f.path, "..data")))
	f.expect(map[string]uint16{"a": 2})
}

func nodeManifest(name, address string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {podCIDR: 10.244.1.0/24}\nstatus: {addresses: [{type: InternalIP, address: %s}]}\n", name, address)
}

func TestWhichNodeThisIs(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	host = strings.ToLower(host)
	cidr := prefixes("10.244.1.0/24")
	local := addrs("127.0.0.1", "169.254.0.1", "192.0.2.1", "192.0.2.2", "fe80::1", "2001:db8::1")
	ofHost := addrs("192.0.2.1", "2001:db8::1")
	for name, test := range map[string]struct {
		nodeName string
		files    string
		want     model.Node
		problems []string
	}{
		"the only one": {"", nodeManifest("n1", "192.168.7.1"), model.Node{Name: "n1", Addresses: addrs("192.168.7.1"), PodCIDRs: cidr}, nil},
		"the one with the name": {
			"n2", nodeManifest("n1", "192.168.7.1") + nodeManifest("n2", "192.168.7.2"),
			model.Node{Name: "n2", Addresses: addrs("192.168.7.2"), PodCIDRs: cidr}, nil,
		},
		"the one with the host's name": {
			"", nodeManifest("n1", "192.168.7.1") + nodeManifest(host, "192.168.7.3"),
			model.Node{Name: host, Addresses: addrs("192.168.7.3"), PodCIDRs: cidr}, nil,
		},
		"none":              {"", web("a", 1), model.Node{Name: host, Addresses: ofHost}, nil},
		"none, with a name": {"n9", web("a", 1), model.Node{Name: "n9", Addresses: ofHost}, nil},
		"only others": {
			"n9", nodeManifest("n1", "192.168.7.1"), model.Node{Name: "n9", Addresses: ofHost},
			[]string{"node n9: is not among the Nodes in the manifests; what the host says of itself does"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t, Options{NodeName: test.nodeName})
			f.write("m.yaml", test.files)
			f.read()
			f.facts.setLocal(local)
			s, _ := f.facts.snapshot()
			test.want.Local = local
			if diff := cmp.Diff(test.want, s.Node, compareFacts); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, texts(f.report.all())); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// directory runs a source of a directory that is never read without a reason.
func runDirectory(t *testing.T, dir string, o Options) *running {
	t.Helper()
	o.Rescan = time.Hour
	return run(t, o, func(o Options) (*Source, error) { return Directory(dir, o) })
}

func port(name string, number uint16) func(model.Snapshot) bool {
	return func(s model.Snapshot) bool { return firstPorts(s)[name] == number }
}

func TestDirectoryNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	must(t, os.WriteFile(path, []byte(web("a", 1)+web("b", 1)), 0o600))
	r := runDirectory(t, dir, Options{})
	r.SetLocal([]netip.Addr{netip.MustParseAddr("192.0.2.1")})
	if err := r.Ready(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.until("the first snapshot", port("a", 1))

	must(t, os.WriteFile(path, []byte(web("a", 2)+web("b", 1)), 0o600))
	r.until("a file written in place", port("a", 2))
	if got := r.changes(); !slices.Equal(got, []string{"default/a"}) {
		t.Errorf("changed: %v", got)
	}

	must(t, os.WriteFile(filepath.Join(dir, ".a.yaml.swp"), []byte(web("a", 3)), 0o600))
	must(t, os.Rename(filepath.Join(dir, ".a.yaml.swp"), path))
	r.until("a file renamed into place", port("a", 3))

	must(t, os.Remove(path))
	r.until("a file removed", has())
}

func TestDirectoryNoticesAConfigMapsSwap(t *testing.T) {
	dir := t.TempDir()
	for i, version := range []string{"..1", "..2"} {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, version, "a.yaml"), []byte(web("a", i+1)), 0o600))
	}
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	r := runDirectory(t, dir, Options{})
	r.until("the first snapshot", port("a", 1))
	must(t, os.Symlink("..2", filepath.Join(dir, "..tmp")))
	must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	r.until("the second version", port("a", 2))
}

func TestDirectoryNoticesAnotherFolderInItsPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(web("a", 1)), 0o600))
	r := runDirectory(t, dir, Options{})
	r.until("the first snapshot", port("a", 1))

	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(web("a", 2)), 0o600))
	r.until("another folder", port("a", 2))
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(web("a", 3)), 0o600))
	r.until("a change in it", port("a", 3))

	must(t, os.Rename(dir, dir+".new"))
	must(t, os.Rename(dir+".old", dir))
	r.until("the first folder again", port("a", 1))
	must(t, os.RemoveAll(dir))
	must(t, os.Rename(dir+".new", dir))
	r.until("the other one again", port("a", 3))
}

func TestDirectoryIsReadNowAndThenAnyway(t *testing.T) {
	dir := t.TempDir()
	r := run(t, Options{Rescan: time.Millisecond}, func(o Options) (*Source, error) { return Directory(dir, o) })
	r.until("the first snapshot", has())
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(web("a", 1)), 0o600))
	r.until("another folder in its place", port("a", 1))
}

func TestDirectoryHasToBeThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := Directory(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v, want one that names %s", err, dir)
	}
	if _, _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v, want one that names %s", err, dir)
	}
}

func TestAHostWithoutAddressIsComplete(t *testing.T) {
	for needed, want := range map[bool]error{false: nil, true: ErrNoNode} {
		f := newFolder(t, Options{NeedPodCIDRs: needed})
		f.write("m.yaml", web("a", 1))
		f.read()
		f.facts.setLocal(addrs("127.0.0.1"))
		if _, err := f.facts.nodeState(); !errors.Is(err, want) {
			t.Errorf("pod CIDRs needed %v: %v, want %v", needed, err, want)
		}
	}
}
