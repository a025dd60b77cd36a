"""A model of ONNX with an Add in the middle: the device computes the bits, ONNX's reference adds.

    python examples/onnx_add.py [URL]

runs on the device URL, or else on the simulated circuit. It needs bitlane's extra `onnx`.
"""

import sys

import numpy as np
import onnx.parser

import bitlane.onnx

MODEL = """<ir_version: 10, opset_import: ["": 18]>
hashes (uint32[n] words, uint32[1] key) => (uint32[n] mixed) <uint32 k = {15}> {
    high = BitShift <direction = "RIGHT"> (words, k)
    folded = BitwiseXor(words, high)
    sum = Add(folded, key)
    left = BitShift <direction = "LEFT"> (sum, k)
    mixed = BitwiseXor(sum, left)
}"""


def main(url: str = "sim") -> None:
    """Run the model on the device ``url``, and print its groups and its results."""
    words, key = np.arange(0, 2**32, 2**29, np.uint32), np.array([0x9E3779B9], np.uint32)
    model = onnx.parser.parse_model(MODEL)
    with bitlane.onnx.prepare(model, url, rest="reference") as prepared:
        print(prepared.explain([words, key]))
        print("mixed:", *(f"{hash_:08x}" for hash_ in prepared.run([words, key]).mixed))


if __name__ == "__main__":
    main(*sys.argv[1:])
