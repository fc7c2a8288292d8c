"""When a recipe is judged: at planned numbers of seeds, so that looking again does not add false verdicts."""

LOOKS = (8, 16, 32)
