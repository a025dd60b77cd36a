"""The subcommands for boards and FPGA tools. They only read words and print answers."""
