# The command `waitword` in Debian 12, without the sources and the compilers:
#     docker build -t waitword . && docker run --rm waitword doctor
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked && strip --strip-debug target/release/waitword
RUN XDG_CACHE_HOME=/drop-in target/release/waitword preload
FROM debian:bookworm-slim
COPY --from=build /source/target/release/waitword /usr/bin/
COPY --from=build /drop-in/waitword/ /usr/lib/waitword/
USER nobody
ENTRYPOINT ["waitword"]
