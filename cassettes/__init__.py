"""What is KEPT: values and bytes. Nothing here opens a socket, starts a process, reads a clock or the environment."""
