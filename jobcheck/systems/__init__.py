"""One folder per job system: how its worker is started, what its messages mean, what it promises, how it recovers."""
