"""Verdicts on runs that were made elsewhere: a study names their logs, and states claims as recipes do."""
