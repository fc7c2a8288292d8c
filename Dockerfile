# Encore with all it needs; what is run without a command is the quickstart.
#   docker build -t encore .                            for the CPU
#   docker build -t encore --build-arg TORCH=cuda .     for a GPU, with vLLM: docker run --gpus all …
# It runs in /work: mount a folder there and say who owns it, and results and checkpoints lie in it as yours.
#   docker run --user $(id -u):$(id -g) -v $PWD:/work encore
#   docker run --user $(id -u):$(id -g) -v $PWD:/work encore encore run NAME --seeds 8
FROM python:3.11-slim
ARG TORCH=cpu
# Triton compiles for the GPU with a C compiler and Python's headers, which this image has.
# hadolint ignore=DL3008,SC2086
RUN if [ "$TORCH" != cpu ]; then compiler="gcc libc6-dev"; fi; \
    apt-get update && apt-get install -y --no-install-recommends bubblewrap git ${compiler:-} \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /encore
# torch first, in a layer of its own: it is large and changes seldom. PyPI's Linux build is the one for CUDA.
RUN if [ "$TORCH" = cpu ]; \
    then pip install --no-cache-dir torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu; \
    else pip install --no-cache-dir torch==2.13.0; fi
COPY . .
RUN if [ "$TORCH" = cpu ]; \
    then pip install --no-cache-dir -e '.[kubernetes]'; \
    else pip install --no-cache-dir -e '.[kubernetes,qlora,liger,vllm]'; fi
# The code is root's, compiled once, and git trusts it. Any user has a home and a folder to write to.
RUN python -m compileall -q encore evals analysis snakemake_logger_plugin_encore \
    && git config --system safe.directory /encore \
    && useradd --uid 1000 --create-home encore && mkdir /work && chmod 1777 /work /home/encore
ENV HOME=/home/encore USER=encore
WORKDIR /work
USER 1000:1000
CMD ["encore", "run", "r1_zero", "--quickstart"]
