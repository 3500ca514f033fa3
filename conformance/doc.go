// Package conformance holds tests that read provider traffic through the client types and judge what comes out: streams
// that were recorded, the same streams cut and re-chunked, whole answers, and what passes through a server. It also asks
// simulated providers through every protocol that callers speak, Open Responses' own suite included. MMSP_CORPUS
// names the folder of recordings and MMSP_CASES that of the cases for a server; without them the tests read the few
// made-up ones in testdata.
package conformance
