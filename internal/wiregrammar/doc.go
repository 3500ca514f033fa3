// Package wiregrammar says what is wrong with an answer of the gateway: it holds the grammar of each protocol that callers
// speak, written from the protocols' specifications and from what their official SDKs refuse, never from an encoder.
//
// Each function takes the bytes of one whole HTTP response body. A nil error means that any client of the protocol can read
// it; an error names every fault found and where it stands. Tests alone import this package.
package wiregrammar
