# /// script
# requires-python = ">=3.11"
# dependencies = ["encore-rl[gym] @ file:///wheel/encore_rl-0.1.0-py3-none-any.whl"]
# ///
"""A job of Hugging Face Jobs that is `encore run` with its arguments, from the top of a clone:

    python -m build
    hf jobs uv run --flavor l4x1 --timeout 3h -v ./dist:/wheel -v hf://buckets/ORG/BUCKET:/work \
        profiles/hf_jobs/job.py r1_zero --scale small-gpu --seeds 1

Results and checkpoints lie in the bucket, which must exist (`hf buckets create BUCKET`): the same command goes
on with a job that was ended. The image must have a C compiler and Python's headers for Triton.
"""

import os
import sys

os.chdir("/work")
os.execv(sys.executable, [sys.executable, "-m", "encore", "run", *sys.argv[1:]])
