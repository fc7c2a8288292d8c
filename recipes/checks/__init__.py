"""Keys of a stage that contradict each other, one module a kind of stage: said before any job starts."""
