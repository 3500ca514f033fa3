package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/gateway"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and with --json what this binary has",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			version, commit := "devel", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				if v := info.Main.Version; v != "" && v != "(devel)" {
					version = v
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = s.Value
					}
				}
			}
			if !asJSON {
				_, err := fmt.Fprintf(c.OutOrStdout(), "mmsp %s (commit %s, %s)\n", version, commit, runtime.Version())
				return err
			}
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(map[string]any{
				"version": version, "commit": commit, "go": runtime.Version(), "client_types": auto.Names(), "ingress": gateway.Endpoints(),
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the client types and ingress endpoints")
	return c
}
