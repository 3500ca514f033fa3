package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// converses refuses what no provider takes: no turns, tools of one name, two calls of a turn with one id, a result without a
// call before it, a second result, a call without a result after it. Calls of Google's that came without ids have their
// names in the place of them, and as many results as there are calls.
func (x *exchange) converses() error {
	r := x.request
	if len(r.Messages) == 0 {
		field := map[carry.Protocol]string{carry.Responses: "input", carry.GenerateContent: "contents"}[x.protocol.Name()]
		return ingress.Invalid(cmp.Or(field, "messages"), "there is no turn but the system's")
	}
	tools := map[string]bool{}
	for i, tool := range r.Config.Tools {
		if tools[tool.Name] {
			return ingress.Invalid(r.ToolPaths[i]+".name", fmt.Sprintf("two tools are called %.100q", tool.Name))
		}
		tools[tool.Name] = true
	}

	turn := map[string]int{}   // the id of a call → that of the last call with it
	open := map[string][]int{} // the id of calls without a result → their numbers
	var paths []string         // of the calls without a result; empty: it has one
	for m := range r.Messages {
		for i, item := range r.Messages[m].ContentItems {
			path, id := r.Paths[m][i], item.ToolCallID
			last, called := turn[id]
			switch item.Type {
			case mmsp.ToolCallDone:
				if called && last == m && id != item.Name {
					return ingress.Invalid(path, fmt.Sprintf("a call before this one, in the same turn, has the id %.100q, too", id))
				}
				turn[id] = m
				open[id] = append(open[id], len(paths))
				paths = append(paths, path)
			case mmsp.ToolResultDone:
				waiting := open[id]
				if !called {
					return ingress.Invalid(path, fmt.Sprintf("no call before this result has the id %.100q", id))
				}
				if len(waiting) == 0 {
					return ingress.Invalid(path, fmt.Sprintf("a result before this one has the id %.100q, too", id))
				}
				n := len(waiting) - 1
				paths[waiting[n]], open[id] = "", waiting[:n]
			}
		}
	}
	if i := slices.IndexFunc(paths, func(path string) bool { return path != "" }); i >= 0 && !x.asked.Counts() {
		return ingress.Invalid(paths[i], "no result after this call has its id")
	}
	return nil
}

// orderResults moves the results of calls to the start of the turn that answers them, in the order of the calls.
func orderResults(request *ingress.Request) {
	for m := 1; m < len(request.Messages); m++ {
		calls := map[string]int{}
		for i, call := range request.Messages[m-1].ToolCalls() {
			calls[call.ToolCallID] = i
		}
		items, paths := request.Messages[m].ContentItems, request.Paths[m]
		if len(calls) == 0 || request.Messages[m].Role != mmsp.RoleUser {
			continue
		}
		place := func(item *mmsp.Item) int {
			if item.Type != mmsp.ToolResultDone {
				return len(calls) + 1
			}
			if i, ok := calls[item.ToolCallID]; ok {
				return i
			}
			return len(calls)
		}
		order := make([]int, len(items))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return place(&items[a]) - place(&items[b]) })
		sortedItems, sortedPaths := make([]mmsp.Item, len(items)), make([]string, len(items))
		for i, from := range order {
			sortedItems[i], sortedPaths[i] = items[from], paths[from]
		}
		request.Messages[m].ContentItems, request.Paths[m] = sortedItems, sortedPaths
	}
}
