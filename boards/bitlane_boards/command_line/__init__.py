"""The subcommands build, flash, devices and simulate. They only read words and print answers."""
