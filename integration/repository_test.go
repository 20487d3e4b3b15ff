package integration

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

const (
	module = "github.com/nlproxy/nlproxy"
	root   = ".."
)

// top is all that may lie at the top level of the repository.
var top = []string{
	".ci", ".gitignore", "LICENSE", "README.md", "Vagrantfile", "go.mod", "go.sum",
	"cmd", "conntrack", "dataplane", "integration", "watch",
}

// pkg is one folder with Go files in it.
type pkg struct {
	dir   string // from the root, with slashes
	files map[string]*ast.File
	tests map[string]*ast.File
}

// repository parses every package of this module, in the order of the folders.
func repository(t *testing.T) (*token.FileSet, []pkg) {
	t.Helper()
	set := token.NewFileSet()
	byDir := map[string]pkg{}
	for _, name := range goFiles(t) {
		file := parse(t, set, filepath.Join(root, name), nil)
		dir := filepath.ToSlash(filepath.Dir(name))
		if _, ok := byDir[dir]; !ok {
			byDir[dir] = pkg{dir, map[string]*ast.File{}, map[string]*ast.File{}}
		}
		if strings.HasSuffix(name, "_test.go") {
			byDir[dir].tests[name] = file
		} else {
			byDir[dir].files[name] = file
		}
	}
	var pkgs []pkg
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		pkgs = append(pkgs, byDir[dir])
	}
	return set, pkgs
}

// parse reads a Go file, or source in its place if that is not nil.
func parse(t *testing.T, set *token.FileSet, name string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// goFiles lists the Go files of this module, from the root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && isOutside(name):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d Go files, %v", len(names), err)
	}
	return names
}

// isOutside reports whether a folder is no part of the module's source.
func isOutside(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil || !slices.Contains(top, first) || filepath.Base(dir) == "testdata"
}

func TestTopLevelHoldsOnlyWhatItMay(t *testing.T) {
	labtest.Tools(t, "git")
	// Also files that are not committed yet, but none that git ignores.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		labtest.Missing(t, "git repository: %v", err)
	}
	wrong := map[string]bool{}
	for name := range strings.Lines(string(out)) {
		first, _, _ := strings.Cut(strings.TrimSpace(name), "/")
		wrong[first] = wrong[first] || !slices.Contains(top, first)
	}
	for name, is := range wrong {
		if is {
			t.Errorf("%s: does not belong at the top level", name)
		}
	}
}

func TestEveryFileIsFormatted(t *testing.T) {
	for _, name := range goFiles(t) {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(source)
		if err != nil || !bytes.Equal(source, formatted) {
			t.Errorf("%s: gofmt would change it (%v)", name, err)
		}
	}
}

func TestEveryPackageIsDocumentedOnce(t *testing.T) {
	_, pkgs := repository(t)
	for _, p := range pkgs {
		var docs []string
		for name, file := range p.files {
			if file.Doc != nil {
				docs = append(docs, name)
			}
		}
		if len(p.files) > 0 && len(docs) != 1 {
			t.Errorf("%s: the comment of the package is in %q", p.dir, docs)
		}
	}
}

func TestVagrantfileIsValid(t *testing.T) {
	labtest.Tools(t, "vagrant")
	cmd := exec.Command("vagrant", "validate", "--ignore-provider")
	cmd.Dir = root
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "VAGRANT_HOME="+home, "VAGRANT_DOTFILE_PATH="+filepath.Join(home, "state"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("vagrant validate: %v\n%s", err, out)
	}
}

func TestVagrantRunsWhatCIRuns(t *testing.T) {
	vagrantfile, err := os.ReadFile(filepath.Join(root, "Vagrantfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{".ci/provision", ".ci/run"} {
		if !bytes.Contains(vagrantfile, []byte(script)) {
			t.Errorf("Vagrantfile does not run %s", script)
		}
		info, err := os.Stat(filepath.Join(root, script))
		if err != nil || info.Mode().Perm()&0o111 != 0o111 {
			t.Errorf("%s is not executable: %v", script, err)
		}
		if out, err := exec.Command("bash", "-n", filepath.Join(root, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
