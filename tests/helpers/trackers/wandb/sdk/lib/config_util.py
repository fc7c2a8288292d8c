class ConfigError(Exception):
    """What wandb raises where a value of its config is changed."""
