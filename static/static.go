// Package static carries the page: the files that `make static` builds from src with Vite, embedded in the binary.
//
//	static/src ──vite──▶ static/dist ──embed──▶ FS ──cmd──▶ web ──▶ browser
//
// The package knows nothing of the rest of threadcast. A program can be built without the page: dist then holds nothing
// but .gitkeep, and the server shows [NotBuilt] in its place.
package static

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var files embed.FS

// NotBuilt is the HTML to show where the page would be, when it has not been built.
const NotBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>threadcast</title>
<h1>The page has not been built</h1>
<p>Run <code>make static</code>, or <code>make run</code>, then reload.</p>
<p>The server itself is up: the socket is at <code>/socket</code>, the API at <code>/api</code>.</p>
</html>
`

// FS returns the built page's files, with index.html at the root, and whether the page has been built. Without a build
// the file system is there, but holds nothing to show. The files under assets have names that change with their
// content, so that they may be cached for ever; index.html names them and must not be cached.
func FS() (fs.FS, bool) { return page(files) }

// page returns the dist folder of fsys, and whether it holds a page.
func page(fsys fs.FS) (fs.FS, bool) {
	dist, err := fs.Sub(fsys, "dist")
	if err != nil {
		return fsys, false
	}
	info, err := fs.Stat(dist, "index.html")
	return dist, err == nil && info.Mode().IsRegular()
}
