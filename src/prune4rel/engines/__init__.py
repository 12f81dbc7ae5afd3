"""Who serves a method what it asks for: this machine, or a cluster."""
