FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/mmsp ./cmd/mmsp && mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/mmsp /mmsp
# Traces go below the working directory, as does what a configuration names by a relative path: the user of the image may
# write there.
COPY --from=build --chown=65532:65532 /out/data /data
WORKDIR /data
USER 65532:65532
EXPOSE 25752
ENTRYPOINT ["/mmsp"]
# The server refuses to listen beyond the loopback interface without callers' keys. Mount a configuration with `api_keys`
# (or with `allow_open: true`, where something else guards the port):
#
#   docker run -p 25752:25752 -e ANTHROPIC_API_KEY -e MMSP_SERVER_API_KEY -v "$PWD/mmsp.yaml:/etc/mmsp/mmsp.yaml:ro" mmsp
#
# The demonstration needs neither keys nor a file, and stays on loopback: docker run --network host mmsp serve --demo
CMD ["serve", "--host", "0.0.0.0", "--config", "/etc/mmsp/mmsp.yaml"]
