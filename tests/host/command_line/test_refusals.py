"""Command lines that are refused: in one line, before a device is opened or a file is written.

A row is a command line; behind ``#`` are words of the message.
"""

import pytest

from support.command_line import refusals

pytestmark = pytest.mark.usefixtures("folder")

X = "run x.onnx --input a=a.npy"
NODE = "node 1 (Add): an operator that bitlane does not have"
MODEL_FILE = "x.onnx is an ONNX model; expected a model file"
NOT_ONNX = "m.json is not an ONNX model; expected MODEL"
REST = "rest: 'tvm'; expected None, 'onnxruntime' or 'reference'"
LOWER = "lower mixed.onnx --device numpy"
NOT_SIMULATED = "is not a simulated device; expected --device sim or numpy"
NO_FOLDER = "expected a folder that can be written to; /proc cannot"
NO_AXIS = "--length: no axis of an input is 'm'; expected 'n'"

ROWS = f"""
run m.json --device serial:x --vcd w.vcd  # serial:x is not a simulated device
run m.json --device serial:x --trace t.json  # bitlane: --trace: serial:x {NOT_SIMULATED}
run m.json --trace a --report ./a  # --report: a is --trace's; expected another file
run m.json --device sim --vcd a --trace a  # --trace: a is --vcd's; expected another
run m.json --trace m.json  # --trace: m.json is MODEL's; expected another file
run m.json --iterations 0  # --iterations: 0; expected 1 or more
run m.json --iterations -3  # --iterations: -3; expected 1 or more
run m.json --trace t --iterations 2  # --trace: shows each dispatch once; expected
run m.json --feature-level 7_0  # invalid choice: '7_0'
run m.json --input a=a.npy  # bitlane: --input, --output: {NOT_ONNX}.onnx
lower m.json --length n=1 --device numpy  # --length: {NOT_ONNX}.
lower m.json --rest reference --device numpy  # --rest: {NOT_ONNX}
check m.json --rest reference  # --rest: {NOT_ONNX}
run m.json --feature-level 2_1  # FeatureLevel
check m.json --feature-level 2_1  # FeatureLevel
info nothing:at/all  # bitlane: device 'nothing:at/all'
run a.json b.json c.json  # 2 files after a.json; expected one MODEL at a time
run a b.json --x  # unrecognized arguments: b.json --x
check a.json b.json c.json  # 2 files after a.json; expected one MODEL at a time
check a b.json --x  # unrecognized arguments: b.json --x
lower a.json b.json c.json  # 2 files after a.json; expected one MODEL at a time
lower a b.json --x  # unrecognized arguments: b.json --x
run broken.json  # line 1, column 2
check broken.json  # line 1, column 2
check page.json  # line 1, column 1 is "# bitlane"; expected JSON
check unbound.json  # bindings.InputTensor is "none"; expected a resource: in, out
check offset.json  # InputTensor.elementOffset is 3 bytes; expected a
run bad.onnx  # bitlane: bad.onnx: not ONNX's format, or cut off
run add.onnx  # bitlane: add.onnx: node 0 (Add): an operator that
run none.onnx  # bitlane: none.onnx: No such file
run x.onnx  # input 'a': nothing given; expected uint8 of shape (n,)
run x.onnx --input b=a.npy  # input 'b': the model has none; expected 'a'
{X} --input b=a.npy  # input 'b': the model has none; expected
{X} --input a=a.npy  # --input a=a.npy: a is there already
{X} --output z=z.npy  # --output: x.onnx has no 'z'; expected 'y'
run x.onnx --input a  # --input a: expected NAME=FILE.npy
run x.onnx --input =a.npy  # --input =a.npy: expected NAME=FILE.npy
{X} --output x=z.npy --output y=./z.npy  # two go to the same file; expected one f
{X} --output y=/proc/y.npy  # --output y=/proc/y.npy: {NO_FOLDER}
{X} --output y=folder.npy  # --output y=folder.npy: expected a file, not a folder
{X} --output y=y.bin  # --output y=y.bin: expected NAME=FILE.npy
run x.onnx --input a=none.npy  # none.npy: No such file
run x.onnx --input a=long.npy  # input 'a': uint16; expected uint8 of shape (n,)
run x.onnx --input a=flat.npy  # 'a': shape (1, 3); expected uint8 of shape (n,)
run x.onnx --input a=objects.npy  # --input: objects.npy; expected a NumPy array file (
run x.onnx --input a=text.npy  # text.npy; expected a NumPy array file (it does
run x.onnx --input a=huge.npy  # --input: huge.npy; expected
{X} --feature-level 3_0  # bitlane: --feature-level: {MODEL_FILE}
{X} --feature-level 4_1  # bitlane: --feature-level: {MODEL_FILE}
{X} --json  # bitlane: --json: {MODEL_FILE}
{X} --trace t.json  # bitlane: --trace: {MODEL_FILE}
{X} --report t.html  # bitlane: --report: {MODEL_FILE}
{X} --iterations 2  # bitlane: --iterations: {MODEL_FILE}
run mixed.onnx  # (--rest) computes such nodes off the device
{LOWER}  # {NODE}; nor does
{LOWER} --rest reference  # without a length of n; expected one (--length n=LEN
{LOWER} --rest reference --length n=8 --length m=8  # mixed.onnx: {NO_AXIS}
{LOWER} --length n=x  # --length n=x: expected NAME=LENGTH
{LOWER} --length =1  # --length =1: expected NAME=LENGTH
{LOWER} --length n=1 --length n=2  # n is there already; expected it once
{LOWER} --feature-level 3_0  # --feature-level: mixed.onnx is an ONNX model; expect
{LOWER} --rest tvm  # {REST}
check x.onnx --device numpy  # --device: {MODEL_FILE}
check x.onnx --feature-level 3_0  # --feature-level: {MODEL_FILE}
check mixed.onnx --rest tvm  # {REST}
"""

test_command_lines_that_are_refused = refusals(
    [(words, line) for words, line in (row.split("  # ", 1) for row in ROWS.strip().splitlines())]
)
