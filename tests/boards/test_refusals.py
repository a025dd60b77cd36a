"""Command lines for boards that are refused: in one line, before a file or a circuit is made."""

from support.host.command_lines import refusals

MAC = "--mac 02:00:00:00:00:01"
ETHERNET = "simulate colorlight-i5"
COMMANDS = (
    *("area", "bench", "build", "campaign", "check", "completion", "demo", "devices", "export"),
    *("flash", "info", "lower", "run", "simulate", "soak", "validate"),
)
SHARE = "expected a share from 0 to 1"
WAIT = "expected seconds, more than 0 and at most 60"

test_every_command_refuses_an_unknown_option = refusals(
    [(f"{name} --no-such-option", f"bitlane {name}: ") for name in COMMANDS]
)

test_boards_that_are_not_there = refusals(
    [
        *(
            (f"{command} icebraker", f"bitlane {command}: argument BOARD: invalid choice: {words}")
            for command in ("build", "flash", "simulate")
            for words in ("'icebraker'; did you mean icebreaker? (choose from colorlight-5a-75b",)
        ),
        *(
            (f"{command} '{board}'", f"argument BOARD: invalid choice: {board!r}")
            for command in ("build", "flash", "simulate")
            for board in ("icebreaker?seed=2", "hx8k?", "?", "", "hx8k:", "serial:x", "hx9k")
        ),
        ("simulate", "the following arguments are required: BOARD"),
        ("build", "build: expected either the name of a board or --all"),
        ("build hx8k --all", "build: expected either the name of a board or --all"),
    ]
)

test_options_of_a_build = refusals(
    [
        *((f"build hx8k -o new --seed={seed}", seed) for seed in ("-1", "x", "2147483648")),
        ("build hx8k -o new --seeds 4:1", "'4:1': expected FIRST:LAST, like 1:32"),
        ("build hx8k -o new --seeds 4", "'4': expected FIRST:LAST, like 1:32"),
        ("build hx8k -o new --seeds=-1:2", "'-1': expected 0 to 2147483647"),
        ("build hx8k -o new --seeds 1:2 --seed 3", "not allowed with"),
        ("build -o new --seeds 1:2 --all", "--seeds is for one board; expected its name"),
        ("build hx8k -o new --workers 2", "--workers and --cluster share the seeds of --seeds"),
        ("build --all --ip 10.0.0.7", "are for one board"),
        *(
            (f"build litex:terasic_de0nano {words}", f"{words.split()[0]} is for the project's own")
            for words in ("--seed 1", "--seeds 1:3", "--ip 10.0.0.1", "--workers 2")
        ),
        ("flash hx8k", "bitlane build hx8k makes it"),
        ("area --family virtex", "invalid choice: 'virtex'"),
        ("area --seeds 0", "--seeds: 0 is outside 1 to 99"),
        ("area --seeds one", "'one': expected a whole number"),
        ("area --design copy-33", "--design: 'copy-33' is not a design; there are copy-32"),
        ("area --json nowhere/a.json", "expected a folder that is there; nowhere is not"),
    ]
)

test_options_of_a_simulation = refusals(
    [
        ("simulate hx8k --pty", "unrecognized arguments: --pty"),
        ("simulate hx8k --bitstream a --netlist b", "argument --netlist: not allowed with"),
        ("simulate hx8k --deadline 0", "argument --deadline: '0': expected seconds, more than 0"),
        ("simulate hx8k --deadline soon", "--deadline: 'soon': expected seconds, more than 0"),
        ("simulate ecpix5 --cable-seed x", "--cable-seed: 'x': expected a whole number"),
        ("simulate hx8k --lose 0.1", "--lose: hx8k has no Ethernet"),
        ("simulate hx8k --cable-seed 2", "--cable-seed: hx8k has no Ethernet"),
        ("simulate hx8k --pcap x.pcap", "--pcap: hx8k has no Ethernet"),
        ("simulate hx8k --ip 10.0.0.7", "--ip: hx8k has no Ethernet"),
        (f"simulate hx8k {MAC}", "--mac: hx8k has no Ethernet"),
        (f"{ETHERNET} --lose 1.5", f"argument --lose: '1.5': {SHARE}"),
        (f"{ETHERNET} --damage x", f"argument --damage: 'x': {SHARE}"),
        (f"{ETHERNET} --port 0", "argument --port: '0': expected 1 to 65535"),
        (f"{ETHERNET} --ip 10.0.0", "--ip: '10.0.0'; expected an address"),
        (f"{ETHERNET} --ip 224.0.0.1", "--ip: 224.0.0.1 is not the address of one board"),
        (f"{ETHERNET} --mac 02:00", "--mac: '02:00'; expected six bytes"),
        (f"{ETHERNET} --mac 02:00:00:00:00:0g", "expected six bytes"),
        (f"{ETHERNET} --mac 01:00:00:00:00:01", "--mac: 01:00:00:00:00:01 is not"),
    ]
)

test_addresses_of_devices = refusals(
    [
        (
            "devices 192.168.1.0/33",
            "'192.168.1.0/33' is not a network: '33' is not a valid netmask; expected a prefix as",
        ),
        ("devices board:70000", "port is '70000'; expected 1 to 65535"),
        ("devices ''", "no address; expected udp://ADDRESS"),
        (
            "devices '10.0.0.9?timeout=2'",
            "devices: '10.0.0.9?timeout=2' has options; expected HOST or",
        ),
        (
            "devices '10.0.0.0/28?x=1'",
            "devices: '10.0.0.0/28?x=1' has options; expected HOST or HOST:P",
        ),
        ("devices board/28", "devices: 'board/28' is not a network: "),
        ("devices 10.0.0.0/23", "devices: 10.0.0.0/23 has 512 addresses; expected 256 or fewer, a"),
        ("devices 10.0.0.0/24 10.0.1.0/29", "devices: 260 addresses; expected 256 or fewer in one"),
        (f"devices {MAC}", "bitlane: --mac: expected --ip, too: the board, and its new addre"),
        ("devices --ip 10.0.0.9", "bitlane: --ip: expected --mac, too: the board, and its new ad"),
        (
            f"devices {MAC} --ip 10.0.0.9 10.0.0.7",
            "bitlane: --mac: the board is found by its MAC address; expected no '10.0.0.7'",
        ),
        *(
            (f"devices --wait {wait}", f"{wait!r}: {WAIT}")
            for wait in ("0", "-1", "61", "inf", "nan", "soon")
        ),
    ]
)
