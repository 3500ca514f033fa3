package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// serveFlags are the command line of `mmsp serve`.
type serveFlags struct {
	file      string
	host      string
	port      int
	portGiven bool
	demo      bool
	check     bool
	enable    []string
	drain     time.Duration
	logFormat string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server and gateway",
		Long: "Run the server and gateway.\n\nThe models come from the configuration file. Without one, each official client whose key is in the\n" +
			"environment serves the models of its family under their own ids. --demo needs neither: it starts\nsimulated providers inside the process.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.portGiven = c.Flags().Changed("port")
			return serve(c.Context(), c, &f)
		},
	}
	c.Flags().StringVar(&f.file, "config", os.Getenv("MMSP_SERVER_CONFIG"), "configuration `FILE`, YAML or JSON (default $MMSP_SERVER_CONFIG)")
	c.Flags().StringVar(&f.host, "host", "", "address to listen on (default 127.0.0.1, or the file's)")
	c.Flags().IntVar(&f.port, "port", 25752, "port to listen on; 0 lets the system choose")
	c.Flags().BoolVar(&f.demo, "demo", false, "serve simulated providers: no key, no network")
	c.Flags().BoolVar(&f.check, "check", false, "check the configuration and do nothing else")
	c.Flags().StringSliceVar(&f.enable, "enable", nil, "ingress endpoints to switch on without a file")
	c.Flags().DurationVar(&f.drain, "drain", 30*time.Second, "how long running streams may go on after SIGTERM")
	c.Flags().StringVar(&f.logFormat, "log-format", "text", "text or json")
	return c
}

func serve(ctx context.Context, c *cobra.Command, f *serveFlags) error {
	var handler slog.Handler
	switch f.logFormat {
	case "text":
		handler = slog.NewTextHandler(c.ErrOrStderr(), nil)
	case "json":
		handler = slog.NewJSONHandler(c.ErrOrStderr(), nil)
	default:
		return fmt.Errorf("--log-format %s: text or json is wanted", f.logFormat)
	}
	log := slog.New(handler)
	switch {
	case f.drain < 0:
		return fmt.Errorf("--drain %s: a time of zero or more is wanted", f.drain)
	case f.demo && c.Flags().Changed("config"):
		return errors.New("--demo serves its own models; leave out --config")
	}
	for _, name := range f.enable {
		if !slices.Contains(config.EndpointNames(), name) {
			return fmt.Errorf("--enable %.64q: no such endpoint; there are %s", name, strings.Join(config.EndpointNames(), ", "))
		}
	}
	if f.check && (f.file == "" || f.demo) {
		return errors.New("--check needs a configuration file: --config FILE")
	}

	flagsWin := func(served *config.Config) {
		served.Warnings = append(served.Warnings, served.HTTP.Endpoints.Enable(f.enable...)...)
		if f.host != "" {
			served.Listen.Host = f.host
		}
		if f.portGiven {
			served.Listen.Port = f.port
		}
	}
	load := func() (*config.Config, error) {
		loaded, err := config.Load(f.file, config.LoadOptions{
			ClientTypes: auto.Accepted(), Features: config.Features{Endpoints: gateway.Endpoints()}, HostOverride: f.host,
		})
		if err == nil {
			flagsWin(loaded)
		}
		return loaded, err
	}
	fromEnvironment := func(served *config.Config) {
		if key := os.Getenv("MMSP_SERVER_API_KEY"); key != "" {
			served.APIKeys = []mmsp.Secret{mmsp.NewSecret(key)}
		}
		flagsWin(served)
	}
	var served *config.Config
	var server *gateway.Server
	var err error
	switch {
	case f.demo:
		var demo *demo
		if demo, err = startDemo(); err != nil {
			return err
		}
		defer demo.Close()
		served = demo.config()
		served.HTTP.Endpoints.Enable(config.EndpointNames()...)
		fromEnvironment(served)
		server, err = gateway.New(served, log, demo.bedrock)
	case f.file != "":
		if served, err = load(); err == nil {
			server, err = gateway.New(served, log)
			err = located(f.file, err)
		}
	default:
		served = new(config.Defaults())
		fromEnvironment(served)
		server, err = gateway.NewFromEnvironment(served, os.Getenv, log)
		if errors.Is(err, gateway.ErrNoKeys) {
			err = fmt.Errorf("nothing to serve: no configuration file and none of the keys %s in the environment; `mmsp serve --demo` needs neither", strings.Join(gateway.KeyVariables(), ", "))
		}
	}
	if err != nil {
		return err
	}
	for _, warning := range served.Warnings {
		log.Warn(warning)
	}
	if f.check {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s: good, %d models\n", f.file, len(served.Models))
		return err
	}

	if len(served.APIKeys) == 0 && !served.AllowOpen && !config.Loopback(served.Listen.Host) {
		return fmt.Errorf("without keys the server is open to everybody who reaches %s; set MMSP_SERVER_API_KEY, or listen on 127.0.0.1", served.Listen.Host)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(served.Listen.Host, strconv.Itoa(served.Listen.Port)))
	if err != nil {
		return err
	}
	if f.file != "" && !f.demo {
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		go func() {
			for range hangup {
				reload(f.file, load, server, served.Listen, log)
			}
		}()
		defer func() {
			signal.Stop(hangup)
			close(hangup)
		}()
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "MMSP server on http://%s/v1\n", listener.Addr())
	fmt.Fprintf(out, "models: %s\n", strings.Join(server.Models(), ", "))
	if len(served.APIKeys) == 0 {
		fmt.Fprintln(out, "no api_keys: the server is open to everybody who can reach it")
	}
	return server.Serve(ctx, listener, f.drain)
}

// reload reads the file again. A bad file changes nothing.
func reload(file string, load func() (*config.Config, error), server *gateway.Server, listen config.Listen, log *slog.Logger) {
	next, err := load()
	if err == nil {
		err = located(file, server.Reload(next))
	}
	if err != nil {
		log.Error("the configuration was not reloaded; the old one goes on serving", "error", err)
		return
	}
	for _, warning := range next.Warnings {
		log.Warn(warning)
	}
	log.Info("the configuration was reloaded", "models", len(next.Models))
	if next.Listen != listen {
		log.Warn("a change of the listen address takes a restart")
	}
}

// located says of rows that cannot be served where in the file they stand.
func located(file string, err error) error {
	var table *gateway.TableError
	if !errors.As(err, &table) {
		return err
	}
	var problems []config.Problem
	for _, row := range table.Rows {
		problems = append(problems, config.Problem{
			File: file, Line: row.Line, Where: fmt.Sprintf("models[%d] '%s'", row.Row, row.ID), Message: row.Err.Error(),
		})
	}
	return &config.Error{Problems: problems}
}
