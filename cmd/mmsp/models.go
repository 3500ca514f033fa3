package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/registry"
)

func modelsCommand() *cobra.Command {
	var asJSON bool
	var currency, live string
	var connection connectionFlags
	c := &cobra.Command{
		Use:   "models",
		Short: "List the supported models with their prices per million tokens",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out := c.OutOrStdout()
			if live != "" {
				client, err := auto.New(live, connection.options())
				if err != nil {
					return err
				}
				ids, err := client.ListModels(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(out).Encode(ids)
				}
				for _, id := range ids {
					fmt.Fprintln(out, printable(id))
				}
				return nil
			}
			in, err := registry.ParseCurrency(currency)
			if err != nil {
				return err
			}
			models := registry.List(in)
			if asJSON {
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				return e.Encode(models)
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintf(table, "MODEL\tCLIENT TYPE\tIN\tOUT\tCONTEXT\tINPUT %[1]s\tCACHED %[1]s\tOUTPUT %[1]s\n", in)
			for _, m := range models {
				context, input, cached, output := "-", "-", "-", "-"
				if m.ContextWindow > 0 {
					context = strconv.FormatInt(m.ContextWindow, 10)
				}
				if p := m.Pricing; p != nil {
					input, output = price(p.Prompt), price(p.Response)
					if p.Cached != nil {
						cached = price(*p.Cached)
					}
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.ClientType, modalities(m.Input), modalities(m.Output), context, input, cached, output)
			}
			return table.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&currency, "currency", "USD", "USD or CNY")
	c.Flags().StringVar(&live, "live", "", "list what the endpoint of `MODEL` serves instead")
	connection.add(c)
	return c
}

func price(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

func modalities(list []registry.Modality) string {
	var names []string
	for _, m := range list {
		names = append(names, string(m))
	}
	return strings.Join(names, ",")
}

// connectionFlags say how to reach a model.
type connectionFlags struct{ clientType, baseURL, apiKey string }

func (f *connectionFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.clientType, "client-type", "", "client type; default CLIENT_TYPE, else by the model's family")
	c.Flags().StringVar(&f.baseURL, "base-url", "", "endpoint; default the client's environment variable, else the vendor's")
	c.Flags().StringVar(&f.apiKey, "api-key", "", "key; default the client's environment variable")
}

func (f *connectionFlags) options() mmsp.Options {
	return mmsp.Options{ClientType: f.clientType, BaseURL: f.baseURL, APIKey: mmsp.NewSecret(f.apiKey)}
}
