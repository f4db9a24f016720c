# The project with its sandbox, for machines on which it cannot be set up. Build the image, check it, and run a task:
#
#   docker build -t exact .
#   docker run --rm --security-opt seccomp=unconfined --security-opt apparmor=unconfined --shm-size=4g exact doctor
#   docker run --rm --security-opt seccomp=unconfined --security-opt apparmor=unconfined --shm-size=4g -v "$PWD/runs:/home/exact/runs" \
#     exact run 'miniwob/click-tab*?seed=1' --config /opt/exact/shells/configs/rmcts_builtin.yaml
#
# The two security options let the sandbox make a user namespace, which Docker refuses by default. The sandbox isolates its guests from the
# container. Snapshots are stored on /dev/shm. Pass keys with `-e OPENAI_API_KEY`. The folder of runs must be writable for uid 1000.
FROM debian:bookworm-slim

RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      ca-certificates chromium-headless-shell fonts-liberation git graphviz libatomic1 python3 python3-venv util-linux \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/exact
# Install gVisor from Debian's backports for all users. The script reads the machine's apt sources.
COPY shells/sandbox.sh shells/
RUN apt-get update -qq \
 && install -m 0755 "$(bash shells/sandbox.sh)" /usr/local/bin/runsc \
 && rm -rf /root/.cache /var/lib/apt/lists/*

COPY . .
RUN bash shells/setup.sh --no-test

RUN useradd --create-home --uid 1000 exact && install -d -o exact -g exact /home/exact/runs
USER exact
WORKDIR /home/exact
ENV PATH="/opt/exact/.venv/bin:$PATH"
ENTRYPOINT ["exact"]
CMD ["doctor"]
