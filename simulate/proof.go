package simulate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash/maphash"
	"sync"
)

func newID(prefix string) string { return prefix + rand.Text() }

// sealer issues proofs of thinking that only it can verify, so that no issued proof has to be remembered.
type sealer struct {
	key     [32]byte
	trusted func(proof string) bool // the proofs of others that count as issued here; nil: none
}

const nonceSize = 16

func newSealer() (s sealer) {
	_, _ = rand.Read(s.key[:])
	return s
}

// sign returns a proof that the text was issued here. Two proofs of one text differ.
func (s sealer) sign(text string) string {
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:])
	return base64.StdEncoding.EncodeToString(append(nonce[:], s.mac(nonce[:], text)...))
}

func (s sealer) verify(proof, text string) bool {
	raw, err := base64.StdEncoding.DecodeString(proof)
	return err == nil && len(raw) > nonceSize && hmac.Equal(raw[nonceSize:], s.mac(raw[:nonceSize], text)) || s.trusts(proof)
}

// seal returns a proof that holds its text.
func (s sealer) seal(text string) string {
	raw, _ := base64.StdEncoding.DecodeString(s.sign(text))
	return base64.StdEncoding.EncodeToString(append(raw, text...))
}

// open returns the text of a sealed proof, which is empty for one of others that is trusted.
func (s sealer) open(proof string) (text string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(proof)
	if size := nonceSize + sha256.Size; err == nil && len(raw) >= size {
		text = string(raw[size:])
		if hmac.Equal(raw[nonceSize:size], s.mac(raw[:nonceSize], text)) {
			return text, true
		}
	}
	return "", s.trusts(proof)
}

func (s sealer) trusts(proof string) bool { return s.trusted != nil && s.trusted(proof) }

// mark returns a few letters by which the sealer knows a key again that it was made for.
func (s sealer) mark(key string) string { return hex.EncodeToString(s.mac(nil, key)[:markSize/2]) }

const markSize = 8

func (s sealer) mac(nonce []byte, text string) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(nonce)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// segment is a piece of a prompt. The prompt of a conversation grows by segments at its end.
type segment struct {
	role, text string
	tokens     int
}

// replyOverhead is the tokens that open the answer. They end every prompt and are never cached.
const replyOverhead = 3

// prefixes remembers the hashes of the prompts it counted and of all their beginnings, the newest 4096 of them.
type prefixes struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[uint64]bool
	ring []uint64
	next int
}

func newPrefixes() *prefixes {
	return &prefixes{seed: maphash.MakeSeed(), seen: map[uint64]bool{}, ring: make([]uint64, 4096)}
}

// count returns the tokens of a prompt, and how many of them begin a prompt that was counted before.
func (p *prefixes) count(model string, segments []segment) (tokens, cached int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hash maphash.Hash
	hash.SetSeed(p.seed)
	_, _ = hash.WriteString(model)
	for _, s := range segments {
		tokens += s.tokens
		_, _ = hash.WriteString("\x00" + s.role + "\x00")
		_, _ = hash.WriteString(s.text)
		sum := hash.Sum64()
		if p.seen[sum] {
			cached = tokens
			continue
		}
		delete(p.seen, p.ring[p.next])
		p.seen[sum] = true
		p.ring[p.next] = sum
		p.next = (p.next + 1) % len(p.ring)
	}
	return tokens + replyOverhead, cached
}
