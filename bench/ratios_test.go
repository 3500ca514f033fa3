package bench

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

const rounds = 5

// TestRatios prints what a conversion costs as multiples of the floor. It judges nothing: a ratio is for a reader, who
// knows what else the machine was doing. The contenders take turns, so that what disturbs one round disturbs them all.
func TestRatios(t *testing.T) {
	if os.Getenv("MMSP_BENCH") == "" {
		t.Skip("MMSP_BENCH=1 runs the measurement")
	}
	if err := flag.Set("test.benchtime", "150ms"); err != nil {
		t.Fatal(err)
	}
	all := contenders(t)
	results := make([][]testing.BenchmarkResult, len(all))
	for range rounds {
		for i := range all {
			results[i] = append(results[i], testing.Benchmark(func(b *testing.B) { measure(b, &all[i]) }))
		}
	}

	nanoseconds := func(r *testing.BenchmarkResult) float64 { return float64(r.NsPerOp()) / publicEvents }
	medians, floors := make([]float64, len(all)), map[string]float64{}
	for i := range all {
		medians[i] = median(results[i], nanoseconds)
		if all[i].name == byHand {
			floors[all[i].protocol] = medians[i]
		}
	}
	fmt.Printf("\nfrom a provider's bytes to the bytes of /v1/stream, %d public events, medians of %d rounds\n", publicEvents, rounds)
	fmt.Printf("%-17s%-15s%10s%9s%17s%14s%13s\n", "protocol", "", "ns/event", "/floor", "spread (ns)", "allocs/event", "bytes/event")
	for i, c := range all {
		low := slices.MinFunc(results[i], byTime)
		high := slices.MaxFunc(results[i], byTime)
		fmt.Printf("%-17s%-15s%10.0f%9.2f%17s%14.2f%13.0f\n", c.protocol, c.name, medians[i], medians[i]/floors[c.protocol],
			fmt.Sprintf("%.0f-%.0f", nanoseconds(&low), nanoseconds(&high)),
			median(results[i], func(r *testing.BenchmarkResult) float64 { return float64(r.AllocsPerOp()) / publicEvents }),
			median(results[i], func(r *testing.BenchmarkResult) float64 { return float64(r.AllocedBytesPerOp()) / publicEvents }))
	}
	fmt.Println("the official SDKs decode only")
}

func byTime(a, b testing.BenchmarkResult) int { return int(a.NsPerOp() - b.NsPerOp()) }

func median(results []testing.BenchmarkResult, of func(*testing.BenchmarkResult) float64) float64 {
	var values []float64
	for i := range results {
		values = append(values, of(&results[i]))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
