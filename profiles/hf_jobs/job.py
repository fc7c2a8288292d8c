# /// script
# requires-python = ">=3.11"
# dependencies = ["encore-rl[gym] @ file:///wheel/encore_rl-0.2.0-py3-none-any.whl"]
# ///
"""A job of Hugging Face Jobs that runs `encore run` with the job's arguments.

From the top of a clone, after `pip install build && python -m build` and `hf buckets create BUCKET`:

    hf jobs uv run --flavor l4x1 --timeout 3h -v ./dist:/wheel -v hf://buckets/ORG/BUCKET:/work \
        profiles/hf_jobs/job.py r1_zero --scale small-gpu --seeds 1

Results and checkpoints lie in the bucket, so the same command goes on with a job that was ended.
"""

import os
import sys

os.chdir("/work")
os.execv(sys.executable, [sys.executable, "-m", "encore", "run", *sys.argv[1:]])
