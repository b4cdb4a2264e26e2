// image writes an archive with two images for `ctr images import`, made of a static busybox: one
// for the containers of the test's pods, and one for the container that holds a pod together.
//
//	image BUSYBOX ARCHIVE
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// names are the images' names, and what each runs if nothing else is asked for. The pods in
// `pods/` and containerd's configuration have them too.
var names = map[string][]string{
	"localhost/busybox:e2e": {"/bin/busybox", "sh"},
	"localhost/pause:e2e":   {"/bin/busybox", "tail", "-f", "/dev/null"},
}

type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: image BUSYBOX ARCHIVE"))
	}
	busybox, err := os.ReadFile(os.Args[1])
	fail(err)
	layer := archive([]file{{"bin/busybox", 0o755, busybox}})

	files := []file{{"layer.tar", 0o644, layer}}
	var manifests []manifest
	for name, entrypoint := range names {
		config := config(entrypoint, layer)
		path := digest(config) + ".json"
		files = append(files, file{path, 0o644, config})
		manifests = append(manifests, manifest{path, []string{name}, []string{"layer.tar"}})
	}
	files = append(files, file{"manifest.json", 0o644, encode(manifests)})
	fail(os.WriteFile(os.Args[2], archive(files), 0o644))
}

func config(entrypoint []string, layer []byte) []byte {
	return encode(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": entrypoint},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
}

type file struct {
	path    string
	mode    int64
	content []byte
}

func archive(files []file) []byte {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, file := range files {
		fail(writer.WriteHeader(&tar.Header{Name: file.path, Mode: file.mode, Size: int64(len(file.content))}))
		_, err := writer.Write(file.content)
		fail(err)
	}
	fail(writer.Close())
	return buffer.Bytes()
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	fail(err)
	return text
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}
