package envelope

import (
	"bytes"
	"net/url"
	"strings"
)

// ArtifactPrefix begins the URI of an artifact, a file that is kept under the SHA-256 of its bytes.
const ArtifactPrefix = "artifact:sha256:"

// digestLength is the length of a SHA-256 in hexadecimal digits.
const digestLength = 64

// FileURI returns the URI of a file.
func FileURI(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// ArtifactURI returns the URI of an artifact.
func ArtifactURI(digest string) string { return ArtifactPrefix + digest }

// ArtifactDigest returns the digest in the URI of an artifact, "" if it is none, and whether the
// URI is one of an artifact.
func ArtifactDigest(uri string) (digest string, is bool) {
	digest, is = strings.CutPrefix(uri, ArtifactPrefix)
	if !IsDigest(digest) {
		digest = ""
	}
	return digest, is
}

// IsDigest reports whether a text is a SHA-256 in 64 lower-case hexadecimal digits.
func IsDigest(text string) bool {
	return len(text) == digestLength && !strings.ContainsFunc(text, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}

// ArtifactsOf returns the digests of the artifacts among references, each once.
func ArtifactsOf(refs []Ref) (digests []string) {
	known := map[string]bool{"": true}
	for _, ref := range refs {
		if digest, _ := ArtifactDigest(ref.URI); !known[digest] {
			known[digest] = true
			digests = append(digests, digest)
		}
	}
	return digests
}

// mostNamed limits the artifacts that ArtifactsIn finds, for texts that are made to be slow.
const mostNamed = 10_000

// ArtifactsIn returns the digests of the artifacts that a text names anywhere, each once, and at
// most 10,000.
func ArtifactsIn(text []byte) (digests []string) {
	var known map[string]bool
	for len(digests) < mostNamed {
		_, rest, found := bytes.Cut(text, []byte(ArtifactPrefix))
		if !found {
			break
		}
		text = rest
		if digest := string(text[:min(len(text), digestLength)]); IsDigest(digest) && !known[digest] {
			if known == nil {
				known = map[string]bool{}
			}
			known[digest] = true
			digests = append(digests, digest)
		}
	}
	return digests
}
