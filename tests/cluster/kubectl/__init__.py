"""What kubectl says when it talks to the embedded cluster, command by command."""
