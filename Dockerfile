# Encore with all it needs; what is run without a command is the quickstart.
#   docker build -t encore .                            for the CPU
#   docker build -t encore --build-arg TORCH=cuda .     for a GPU, with vLLM: docker run --gpus all …
#   docker run -v $PWD/results:/encore/results -v $PWD/checkpoints:/encore/checkpoints encore
FROM python:3.11-slim
ARG TORCH=cpu
# Triton compiles for the GPU with a C compiler and Python's headers, which this image has.
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
    then pip install --no-cache-dir -e .; \
    else pip install --no-cache-dir -e '.[qlora,liger,vllm]'; fi
CMD ["snakemake", "--cores"]
