"""What the vLLM server of a stage is told by the stage (a stand-in takes the server's place)."""

from types import SimpleNamespace

import jobs
import pytest
from stage_runs import GRPO

from encore.runtime import gpus
from encore.sampling import vllm_server
from encore.stages import serving


@pytest.mark.parametrize("asked", [True, False])
def test_the_server_of_a_deterministic_stage_is_so_although_its_trainer_cannot_be(
    asked, tmp_path, monkeypatch
):
    made = []

    def started(command, environment, *_):
        made.append(environment)
        return SimpleNamespace(ready=print, close=lambda: None)

    monkeypatch.setenv(gpus.SERVING, "1")
    monkeypatch.setattr(vllm_server, "Server", started)
    monkeypatch.setattr(serving, "locate_policy", lambda stage, inputs: (None, None))
    monkeypatch.setattr(serving.language_model, "folder_of", lambda source: "folder")
    config = GRPO | {"args": GRPO["args"] | {"use_vllm": True, "vllm_mode": "server"}, "deterministic": asked}
    args = SimpleNamespace(use_vllm=True, vllm_mode="server", bf16=True, seed=0, vllm_server_timeout=1.0)
    with serving.server(jobs.stage("grpo", config), jobs.job({}, tmp_path), args):
        assert made[0].get("VLLM_BATCH_INVARIANT") == ("1" if asked else None)
