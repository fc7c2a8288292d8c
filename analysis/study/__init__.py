"""Verdicts on runs that were made elsewhere: a study names their logs, and claims in the form of recipes."""
