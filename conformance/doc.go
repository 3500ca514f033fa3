// Package conformance holds tests that read provider traffic through the client types and judge what comes out: streams
// recorded by others, the same streams cut and re-chunked, whole answers, and what passes through a server. MMSP_CORPUS
// names the folder of recordings; without it the tests read the few made-up ones in testdata.
package conformance
