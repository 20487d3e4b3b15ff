package integration

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"testing"
)

func TestNoPackageHasAnInitFunction(t *testing.T) {
	set, pkgs := repository(t)
	for _, p := range pkgs {
		for _, file := range p.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: init function", set.Position(f.Pos()))
				}
			}
		}
	}
}

// A package variable is allowed if it is as good as a constant: it has its
// value from the start, and nothing in its package assigns to it or to a part of
// it. Its address may be taken, as a way not to copy a table.
func TestNoPackageVariableChanges(t *testing.T) {
	set, pkgs := repository(t)
	for _, p := range pkgs {
		files := slices.Collect(maps.Values(p.files))
		if len(files) == 0 {
			continue
		}
		for _, wrong := range changing(set, files) {
			t.Errorf("%s: %s", set.Position(wrong.pos), wrong.what)
		}
	}
}

func TestChangingVariablesAreFound(t *testing.T) {
	for source, want := range map[string]int{
		"var e = f()":                                    0,
		"var m = map[int]int{}\nvar n = m[1]":            0,
		"var _ interface{} = x{}\ntype x struct{}":       0,
		"import _ \"embed\"\n//go:embed a\nvar b []byte": 0,
		"var a = 1\nfunc f() { a := 2; a = 3; _ = a }":   0,
		"var a int":                                            1,
		"var a = 1\nfunc f() { a = 2 }":                        1,
		"var a = 1\nfunc f() { a++ }":                          1,
		"var m = map[int]int{}\nfunc f() { m[1] = 2 }":         1,
		"var m = map[int]int{}\nfunc f() { delete(m, 1) }":     1,
		"var a = struct{ b []int }{}\nfunc f() { a.b[0] = 2 }": 1,
		"var a = [2]int{}\nfunc f() *[2]int { return &a }":     0,
	} {
		set := token.NewFileSet()
		if got := changing(set, []*ast.File{parse(t, set, "p.go", "package p\n"+source)}); len(got) != want {
			t.Errorf("%s\nfound %v, want %d", source, got, want)
		}
	}
}

type finding struct {
	pos  token.Pos
	what string
}

// changing finds the package variables of one package that are not as good as
// constants.
func changing(set *token.FileSet, files []*ast.File) (found []finding) {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	// Names within the package are all that counts, so imports stay unknown and
	// the errors that follow from that do not matter.
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	p, _ := conf.Check("p", set, files, &info)
	for _, file := range files {
		found = append(found, withoutValue(file)...)
		ast.Inspect(file, func(n ast.Node) bool {
			for _, target := range changed(n) {
				v, ok := info.Uses[base(target)].(*types.Var)
				if ok && v.Parent() == p.Scope() {
					found = append(found, finding{n.Pos(), v.Name() + " is changed"})
				}
			}
			return true
		})
	}
	return found
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }

// withoutValue finds package variables that start empty. Only go:embed may
// fill one.
func withoutValue(file *ast.File) (found []finding) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR || isEmbed(decl.Doc) {
			continue
		}
		for _, s := range decl.Specs {
			if spec := s.(*ast.ValueSpec); len(spec.Values) == 0 && !isEmbed(spec.Doc) {
				found = append(found, finding{spec.Pos(), spec.Names[0].Name + " has no value"})
			}
		}
	}
	return found
}

func isEmbed(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return len(c.Text) > len("//go:embed ") && c.Text[:len("//go:embed ")] == "//go:embed "
	})
}

// changed returns what n assigns to or deletes from.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// base returns the variable of which an expression is a part; nil if none.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}
