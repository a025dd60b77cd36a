"""The `bitlane` program: finds its subcommands, reads words and prints answers."""
