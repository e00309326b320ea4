"""Running scenario files: the world that is broken, who breaks it, what was seen, and the verdict."""
