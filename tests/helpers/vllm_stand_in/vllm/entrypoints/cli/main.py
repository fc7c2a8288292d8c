"""`python -m vllm.entrypoints.cli.main serve MODEL …`: a server with vLLM's routes, as far as TRL asks.

STAND_IN_FAILS: it ends as vLLM does where memory is short. STAND_IN_DIES_AT=n: it ends at the n-th request
for completions.
"""

import argparse
import contextlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Client

import torch
from transformers import AutoModelForCausalLM

from encore.sampling.decoding import sample

WIDTH = {"float32": torch.float32, "bfloat16": torch.bfloat16}
VLLM_CONFIG = {
    "weight_transfer_config": {"backend": "nccl"},
    "model_config": {"logprobs_mode": "processed_logprobs"},
}


class State:
    def __init__(self, options):
        self.model = AutoModelForCausalLM.from_pretrained(options.model, dtype=WIDTH[options.dtype])
        self.name, self.lock, self.served = options.model, threading.Lock(), 0
        self.channel, self.updating = None, False
        torch.manual_seed(options.seed)

    def completions(self, asked):
        self.served += 1
        if self.served == int(os.environ.get("STAND_IN_DIES_AT", "0")):
            print("RuntimeError: CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        assert {"model": self.name, "return_token_ids": True, "logprobs": 0}.items() <= asked.items()
        prompts = [ids for ids in asked["prompt"] for _ in range(asked["n"])]
        end = self.model.generation_config.eos_token_id
        drawn, logps = sample(self.model, prompts, asked["max_tokens"], asked["temperature"], [end])
        choices = []
        for prompt, ids, values in zip(prompts, drawn, logps.tolist(), strict=True):
            names = [f"token_id:{token}" for token in ids]
            each = values[: len(ids)]
            tops = [{name: value} for name, value in zip(names, each, strict=True)]
            logprobs = {"tokens": names, "token_logprobs": each, "top_logprobs": tops}
            choices.append({"prompt_token_ids": prompt, "token_ids": ids, "logprobs": logprobs})
        return {"choices": choices}

    def init_weight_transfer_engine(self, asked):
        info = asked["init_info"]
        while self.channel is None:
            with contextlib.suppress(ConnectionRefusedError):  # the trainer is about to listen
                self.channel = Client((info["master_address"], info["master_port"]))
        return {}

    def start_weight_update(self, asked):
        self.updating = True
        return {}

    def update_weights(self, asked):
        assert self.updating
        info = asked["update_info"]
        weights = dict(self.model.named_parameters())
        assert sorted(info["names"]) == sorted(weights)
        for name, dtype, shape in zip(info["names"], info["dtype_names"], info["shapes"], strict=True):
            received = torch.frombuffer(bytearray(self.channel.recv_bytes()), dtype=WIDTH[dtype])
            weights[name].data.copy_(received.view(shape))
        return {}

    def finish_weight_update(self, asked):
        self.updating = False
        total = sum(weights.double().abs().sum().item() for weights in self.model.parameters())
        print(f"weights received: {total!r}", flush=True)
        return {}

    def reset_prefix_cache(self, asked):
        return {"success": True}


def handler(state):
    gets = {
        "/health": lambda: {},
        "/v1/models": lambda: {"data": [{"id": state.name}]},
        "/get_world_size": lambda: {"world_size": 1},
    }
    if os.environ.get("VLLM_SERVER_DEV_MODE") == "1":
        gets["/server_info?config_format=json"] = lambda: {"vllm_config": VLLM_CONFIG}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, found):
            body = json.dumps({} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(gets[self.path]() if self.path in gets else None)

        def do_POST(self):
            length = int(self.headers.get("Content-Length") or 0)
            asked = json.loads(self.rfile.read(length) or "{}")
            function = getattr(state, self.path.removeprefix("/v1/").removeprefix("/"), None)
            with state.lock:
                self.answer(function(asked) if function else None)

        def log_message(self, *_):
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("model")
    for option in ("--host", "--dtype"):
        parser.add_argument(option, required=True)
    for option in ("--port", "--seed"):
        parser.add_argument(option, type=int, required=True)
    options, _ = parser.parse_known_args()
    print(f"process {os.getpid()} serves {options.model}", flush=True)
    if "STAND_IN_FAILS" in os.environ:
        sys.exit("ValueError: No available memory for the cache blocks.")
    torch.set_num_threads(1)
    server = ThreadingHTTPServer((options.host, options.port), handler(State(options)))
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
