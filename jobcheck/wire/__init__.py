"""Bytes to units, sans-I/O, one protocol a module. Nothing here opens a socket, reads a clock or draws a number."""
