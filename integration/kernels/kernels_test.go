package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) {
	daemon.Build()
	os.Exit(m.Run())
}

// kernels are those of Debian 12: its own, and the long-term one after it.
var kernels = []struct{ series, name string }{
	{"6.1.", "linux-image-cloud-amd64"},
	{"6.12.", "linux-image-6.12-cloud-amd64"},
}

// root is the repository.
const root = "../.."

// sources is where a kernel finds what tests read of the repository.
const sources = "/src"

// The modules that the kernel does not load by itself when they are needed, and
// those of the legacy tables, which no test in a user namespace can load.
const load = "for m in ip_vs iptable_nat iptable_filter iptable_mangle ip6table_nat ip6table_filter ip6table_mangle; do modprobe $m || exit 1; done"

// steps run on each kernel. The tests left out provoke races for so long that it
// takes minutes there.
var steps = []step{
	{name: "modules", dir: "/", command: unit("leftovers", "-test.run=TestLookingLoadsNoModule"),
		must: []string{"TestLookingLoadsNoModule"}},
	{name: "demo", dir: "/", command: "/bin/nlproxy demo"}, // for which the kernel loads all by itself
	{name: "load", dir: "/", command: "( " + load + " )"},
	{name: "leftovers", dir: sources + "/dataplane/leftovers", command: unit("leftovers", ""), must: []string{
		"TestVirtualServersOfKubeProxyGoAndThoseOfOthersStay", "TestVirtualServersWithoutKubeProxyAreNotLookedFor",
		"TestDeviceGoesAlone", "TestDeviceOfAnotherTypeStays", "TestSetsGoByTheirNames", "TestSetThatOthersReferToStays",
		"TestTablesOfTheNftablesModeGo", "TestLegacyTablesGoBeforeTheSetsOfTheirRules",
		"TestChainsOfTheIPVSModeGoWithTheFirstSynchronisation",
	}},
	{name: "kernel", dir: sources + "/dataplane/kernel", command: unit("kernel", "-test.skip=TestListWhileOthersChangeTheRuleset"), must: []string{
		"TestBothFamiliesAreOneTransaction", "TestChainGoesWithItsLastReference", "TestOfSeveralChainsThatMayGoTheOneInUseStays",
		"TestReasonIsInWords", "TestCountersAreMadeOnceAndRead", "TestTableGoesWithAllThatIsInIt",
	}},
	{name: "legacy", dir: sources + "/dataplane/legacy", command: unit("legacy", "-test.skip='TestRandomTables|TestOthersWriteAtTheSameTime'"), must: []string{
		"TestChainThatOthersJumpToIsEmptied", "TestJumpsGoFromTheChainSharedWithTheKubelet", "TestTableThatHasChangedIsReadAgain",
	}},
	{name: "conntrack", dir: sources + "/conntrack", command: unit("conntrack", "-test.skip=TestIndexAgreesWithOneFromScratch")},
}

// unit runs the test binary of a package.
func unit(name, flags string) string {
	return "/bin/" + name + ".test -test.v -test.short -test.timeout=25m " + flags
}

// packages are those whose test binaries run.
var packages = []string{"dataplane/leftovers", "dataplane/kernel", "dataplane/legacy", "conntrack"}

func TestProductOnKernelsOfDebian(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("emulates a machine for minutes")
	case runtime.GOARCH != "amd64":
		t.Skip("the kernels are for amd64")
	}
	labtest.Tools(t, append([]string{"qemu-system-x86_64", "apt-get", "dpkg", "ldd"}, tools...)...)
	busybox := filepath.Join(unpacked(t, "busybox-static"), "bin/busybox")
	binaries := append(built(t), daemon.Binary(t))
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			kernel := unpacked(t, k.name)
			i := newImage(t, busybox)
			if release := i.addModules(kernel); !strings.HasPrefix(release, k.series) {
				labtest.Missing(t, "kernel %sx in package %s, which has %s", k.series, k.name, release)
			}
			i.addTools()
			i.addSources(binaries)
			i.addScript(script(steps))
			console := boot(t, kernel, i.pack())
			for _, s := range steps {
				for _, wrong := range s.wrong(console) {
					t.Errorf("%s: %s", s.name, wrong)
				}
			}
		})
	}
}

// built are the test binaries.
func built(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", dir + "/"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.test"))
	if err != nil || len(files) != len(packages) {
		t.Fatalf("built %q for %q: %v", files, packages, err)
	}
	return files
}

// addSources copies binaries, and what the tests read, to where it is in the
// repository.
func (i image) addSources(binaries []string) {
	i.t.Helper()
	for _, binary := range binaries {
		i.copy(binary, filepath.Join("bin", filepath.Base(binary)))
	}
	for _, p := range append([]string{"integration"}, packages...) {
		i.must(os.MkdirAll(i.path(filepath.Join(sources, p)), 0o755))
		if data := filepath.Join(root, p, "testdata"); exists(data) {
			absolute, err := filepath.Abs(data)
			i.must(err)
			i.copy(absolute, filepath.Join(sources, p, "testdata"))
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
