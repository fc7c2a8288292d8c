"""Judge runs that were made elsewhere: a study says where their logs lie, and claims as recipes do."""
