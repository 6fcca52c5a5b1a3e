# syntax=docker/dockerfile:1
FROM node:20-bookworm-slim AS page
WORKDIR /src/static
COPY static/package.json static/package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
COPY static ./
RUN npm run build

FROM golang:1.26-bookworm AS build
ARG VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
COPY --from=page /src/static/dist ./static/dist
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /threadcast ./cmd/threadcast \
 && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /threadcast /threadcast
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
# Nobody has to log in yet: publish the port on loopback only, as in docker run -p 127.0.0.1:8080:8080.
ENTRYPOINT ["/threadcast"]
CMD ["--listen", "0.0.0.0:8080", "--insecure", "--database", "/data/threadcast.db"]
