"""A Ray cluster serves a method: rows stay in shards, neighbours are found tile by tile. Ray is imported late."""
