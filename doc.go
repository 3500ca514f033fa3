// Package mmsp is the Go implementation of MMSP, the Model Message Stream Protocol: one message format and one strict
// streaming grammar for every model provider.
//
// The package holds the protocol itself: Item, Message, Event, Config and Usage with their wire JSON, the typed errors,
// the grammar checker, and the one method that builds the public stream out of what a provider client reads. Provider
// clients live in clients/, one folder per client type; package auto chooses one for a model id.
package mmsp
