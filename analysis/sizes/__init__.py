"""Whether the effect of a claim grows, stays or shrinks as models become larger."""
