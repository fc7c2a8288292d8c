"""The Hub's models that recipes name: their pinned commits, and of which kind tiny stand-ins are.

Each has safetensors at its commit, for nothing else is loaded.
"""

REVISIONS = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": "12fd25f77366fa6b3b4b768ec3050bf629380bac",
    "EleutherAI/pythia-1b-deduped": "7199d8fc61a6d565cd1f3c62bf11525b563e13b2",
    "EleutherAI/pythia-2.8b-deduped": "04c6993bdebe728d5ad1dae3a916eaa766166783",
    "EleutherAI/pythia-6.9b-deduped": "d7e0e8080e3935fff58cb35d13fdaab0b2da9f30",
    "EleutherAI/pythia-70m": "a39f36b100fe8a5377810d56c3f4789b9c53ac42",
    "EleutherAI/pythia-160m": "50f5173d932e8e61f858120bcb800b97af589f46",
    "EleutherAI/pythia-410m": "9879c9b5f8bea9051dcb0e68dff21493d67e9d4f",
    "EleutherAI/pythia-1.4b": "fedc38a16eea3bd36a96b906d78d11d2ce18ed79",
    "EleutherAI/pythia-2.8b": "2a259cdd96a4beb1cdf467512e3904197345f6a9",
    "EleutherAI/pythia-6.9b": "c0e3eee36dc47af0c49f361c74cfe459c09f7f23",
    "Qwen/Qwen2.5-0.5B": "060db6499f32faf8b98477b0a26969ef7d8b9987",
    "Qwen/Qwen2.5-0.5B-Instruct": "7ae557604adf67be50417f59c2c2f167def9a775",
    "Qwen/Qwen2.5-3B": "3aab1f1954e9cc14eb9509a215f9e5ca08227a9b",
    "Qwen/Qwen2.5-3B-Instruct": "aa8e72537993ba99e69dfaafa59ed015b17504d1",
    "Qwen/Qwen2.5-1.5B": "8faed761d45a263340a0528343f099c05c9a4323",
    "Qwen/Qwen2.5-1.5B-Instruct": "989aa7980e4cf806f80c7fef2b1adb7bc71aa306",
    "Qwen/Qwen2.5-7B": "d149729398750b98c0af14eb82c78cfe92750796",
    "Qwen/Qwen2.5-7B-Instruct": "a09a35458c702b33eeacc393d103063234e8bc28",
    "Qwen/Qwen2.5-14B": "97e1e76335b7017d8f67c08a19d103c0504298c9",
    "Qwen/Qwen2.5-32B": "1818d35814b8319459f4bd55ed1ac8709630f003",
    "Qwen/Qwen2.5-32B-Instruct": "5ede1c97bbab6ce5cda5812749b4c0bdf79b18dd",
    "Qwen/Qwen2.5-Math-1.5B": "4a83ca6e4526a4f2da3aa259ec36c259f66b2ab2",
    "Qwen/Qwen2.5-Math-7B": "b101308fe89651ea5ce025f25317fea6fc07e96e",
    "Qwen/Qwen3-0.6B-Base": "da87bfb608c14b7cf20ba1ce41287e8de496c0cd",
    "Qwen/Qwen3-1.7B-Base": "ea980cb0a6c2ae4b936e82123acc929f1cec04c1",
    "Qwen/Qwen3-4B-Base": "906bfd4b4dc7f14ee4320094d8b41684abff8539",
    "Qwen/Qwen3-30B-A3B-Base": "1b75feb79f60b8dc6c5bc769a898c206a1c6a4f9",
    "RLHFlow/LLaMA3-SFT": "1bedbf1899806bf585bd8d0833541d28af017dce",
    "deepseek-ai/DeepSeek-V3-Base": "afb92e1fa402c2be2a9eb085312bb02e0384d6c7",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": "ad9f0ae0864d7fbcd1cd905e3c6c5b069cc8b562",
    "deepseek-ai/deepseek-math-7b-instruct": "0a5828f800a36df0fd7f0ed581b983246c0677ff",
}


def kind(name: str) -> str:
    """Return which of `true_tokenizers` has the architecture and the tokenizer of a model."""
    if "pythia" in name:
        return "gpt-neox"
    if "SmolLM2" in name:
        return "smollm2"
    if "R1-Distill" in name:
        return "qwen2-thinking"
    return "qwen2" if "Instruct" in name else "qwen2-base"
