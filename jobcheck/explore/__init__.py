"""Points from recordings, the strikes that cover them, and the causes behind what went wrong. Pure."""
