"""Damaged and hostile files: models, images, arrays, saved indexes, ONNX models.

Each function takes the random choices and returns a file's content.
"""

import io
import json
import struct
import zipfile
import zlib
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from PIL import Image

from support.host.model_files import MODEL, buffer, not_model, png_chunk
from support.host.onnx_models import made_up

NAMES = [
    *("", " ", "a", "in", "A", "..", "\n", "\r\n", "\t", "\0", "'", '"', "ü", "\u202e", "\x7f"),
    *("\x1b]0;x\x07", "\x1b[2J", "\x9b31m", "\u2028", "\ufffe", "\U0010ffff", "x" * 5000),
    *("a.npy", "a.png", "a.jpg", "a.bin", "a.txt", "none.npy", ".", "b/c.npy", "dispatch", "print"),
]
"""Names and texts; no path leads out of the folder of the test."""

NUMBERS = [
    *(0, 1, -1, 2, 3, 4, 7, 8, 16, 64, 65, 100, 255, 256, 60_000),
    *(2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64, 10**23, 10**400),
    *(0.5, -0.0, 1e308, 5e-324),
]


def hostile_value(choose: Random, depth: int = 0) -> Any:
    """Return any value of JSON."""
    kind = choose.randrange(8 if depth < 3 else 5)
    if kind < 2:
        return choose.choice(NUMBERS)
    if kind < 4:
        return choose.choice(NAMES)
    if kind == 4:
        return choose.choice([None, True, False])
    if kind == 5:
        many = [1] * choose.choice([0, 5, 101, 3000])
        return many if choose.randrange(2) else [hostile_value(choose, depth + 1)] * 3
    if kind == 6:
        return {choose.choice(NAMES): hostile_value(choose, depth + 1) for _ in range(3)}
    deep: Any = []
    for _ in range(choose.choice([3, 200, 900])):
        deep = [deep] if choose.randrange(2) else {"a": deep}
    return deep


def _nodes(value: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Return the places of a value that are not too deep: a container and a key."""
    if isinstance(value, dict | list) and depth < 9:
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        inner = [place for _, each in items for place in _nodes(each, depth + 1)]
        return [(value, key) for key, _ in items] + inner
    return []


def _models() -> list[Any]:
    resources = [
        buffer("UINT8", {"sourcePath": "a.npy"}),
        buffer("UINT8", {"sourcePath": "a.png"}, resampleSize=[1, 3, 2, 2], resampleMode="scale"),
        buffer("FLOAT32", {"sourcePath": "a.jpg"}),
        buffer("UINT8", {"sourcePath": "a.bin"}, sizeInBytes=64),
        buffer("INT32", {"valueCount": 9, "valueStart": 3, "valueDelta": -1}),
        buffer("FLOAT16", [1, "nan", "-inf", 0.5]),
        {"initialValues": [{"name": "x", "type": "UINT64", "value": 3}]},
    ]
    model = not_model()
    model["resources"] |= {f"r{index}": each for index, each in enumerate(resources)}
    model["commands"] += [
        {"type": "print", "resource": "out", "verbose": True},
        {"type": "writeFile", "resource": "r1", "targetPath": "b.png", "dimensions": [1, 3, 2, 2]},
        {"type": "writeFile", "resource": "r4", "targetPath": "c/b.npy", "dimensions": [3, 3]},
        {"type": "writeFile", "resource": "r6", "targetPath": "b.bin"},
    ]
    return [not_model(), MODEL, model]


def model_file(choose: Random) -> bytes:
    """Return a model file with a few places changed, in its values or in its text."""
    model = deepcopy(choose.choice(_models()))
    for _ in range(choose.choice([0, 1, 1, 1, 2, 3])):
        places = _nodes(model)
        if not places:
            break
        container, key = choose.choice(places)
        match choose.randrange(4):
            case 0 | 1:
                container[key] = hostile_value(choose)
            case 2:
                del container[key]
            case _ if isinstance(container, dict):
                container[choose.choice(NAMES)] = container.pop(key)
            case _:
                container.append(container[key])
    text = json.dumps(model, ensure_ascii=choose.randrange(2) == 0, allow_nan=False)
    content = text.encode(errors="surrogatepass")
    return content if choose.randrange(8) else damaged(choose, content)


def damaged(choose: Random, content: bytes) -> bytes:
    """Return ``content`` with bits flipped, or a part of it lost, repeated or replaced."""
    data = bytearray(content)
    for _ in range(choose.randrange(1, 4)):
        if not data:
            break
        at, size = choose.randrange(len(data)), choose.choice([1, 2, 4, 8, 100])
        match choose.randrange(5):
            case 0 | 1:
                data[at] ^= 1 << choose.randrange(8)
            case 2:
                data[at : at + size] = choose.randbytes(size)
            case 3:
                del data[at : choose.choice([at + size, len(data)])]
            case _:
                data[at:at] = data[at : at + size] * choose.choice([1, 2, 50])
    return bytes(data)


SHAPES = [
    *("()", "(3,)", "(2, 3)", "(0, 3)", "(3, 0)", "(-1, 3)", "(5, 8", "'x'", "None", "(1,) * 9"),
    *(f"({10**23},)", f"({2**62}, {2**62})", "(100000000000,)", f"(0, {10**30})", "(True, 3)"),
    *(f"({'1,' * 70})", f"{'(' * 250}1{',)' * 250}", "(3.0,)", "[2, 3]", "((2, 3))"),
]
TYPES = [
    *("'|u1'", "'<u4'", "'>f8'", "'|O'", "'<U9'", "'|V0'", "'<U2147483647'", "'|S0'", "'M8[s]'"),
    *("()", "[]", "5", "None", "[('a', '<u1')]", "[('\\x1b', '|O')]", "('<u1', (3,))", "[(1,)]"),
    *("'i4,' * 9", "'" + "i4," * 900 + "'", "{}", "'nonsense\\x1b'", "b'u1'", "'|b1'", "'<c8'"),
]


def npy(choose: Random) -> bytes:
    """Return an array file: with a header of any kind, or damaged."""
    if choose.randrange(2):
        target = io.BytesIO()
        np.save(target, np.arange(6, dtype=choose.choice(["u1", "<u4", "f8"])).reshape(2, 3))
        content = target.getvalue()
        return content if choose.randrange(3) == 0 else damaged(choose, content)
    order = choose.choice(["False", "True", "0", "'C'"])
    text = f"{{'descr': {choose.choice(TYPES)}, 'fortran_order': {order}, "
    text += f"'shape': {choose.choice(SHAPES)}}}"
    text += choose.choice(["", "\n", " " * 20_000, "\0", "x"])
    header = text.encode("latin-1", errors="replace")
    size = struct.pack("<H", len(header) % 65536)
    version = choose.choice([b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\4\0"])
    if version[0] > 1:
        size = struct.pack("<I", choose.choice([len(header), len(header), 2**32 - 1]))
    return b"\x93NUMPY" + version + size + header + bytes(choose.choice([0, 6, 48]))


def sources(choose: Random) -> dict[str, bytes]:
    """Return the files that model files name."""
    sound = io.BytesIO()
    np.save(sound, np.arange(6, dtype=np.uint8))
    files = {"a.npy": sound.getvalue(), "a.bin": choose.randbytes(16)}
    for name, kind in (("a.png", "PNG"), ("a.jpg", "JPEG")):
        picture = io.BytesIO()
        Image.new("RGB", (2, 2)).save(picture, kind)
        files[name] = picture.getvalue()
    for name, hostile in (("a.npy", npy), ("a.png", image), ("a.jpg", image)):
        if choose.randrange(4) == 0:
            files[name] = hostile(choose)
    return files


def image(choose: Random) -> bytes:
    """Return an image, with chunks that inflate or make no sense, or damaged."""
    target = io.BytesIO()
    kind = choose.choice(["PNG", "PNG", "JPEG", "GIF", "TIFF", "BMP"])
    mode = choose.choice(["L", "RGB"])
    Image.new(mode, (choose.randrange(1, 9), 3)).save(target, kind)
    content = target.getvalue()
    if kind == "PNG" and choose.randrange(2):
        inflating = zlib.compress(bytes(choose.choice([9, 1 << 21])))
        chunks = [
            *((b"zTXt", b"a\0\0" + inflating), (b"iTXt", b"a\0\1\0\0\0" + inflating)),
            *((b"iCCP", b"a\0\0" + inflating), (b"tEXt", b"\x1b\0\x07"), (b"tRNS", b"")),
            *((b"PLTE", bytes(3)), (b"acTL", b"1"), (b"fcTL", b""), (b"eXIf", b"MM\0*")),
            *((b"pHYs", b""), (b"gAMA", b""), (b"sRGB", b""), (b"IHDR", bytes(13))),
        ]
        sizes = struct.pack(">II", choose.choice([1, 8200, 2**31 - 1]), choose.choice([1, 9000]))
        chunks.append((b"IHDR", sizes + bytes([8, choose.choice([0, 2, 3, 4, 6]), 0, 0, 0])))
        extra = b"".join(png_chunk(*choose.choice(chunks)) for _ in range(choose.randrange(1, 4)))
        at = choose.choice([8, 33])
        content = content[:at] + extra + content[at:]
    return content if choose.randrange(3) == 0 else damaged(choose, content)


def index(choose: Random) -> bytes:
    """Return an archive as of a saved index: members and headers of any kind, or damaged."""
    target = io.BytesIO()
    words = ["bitlane.BinaryIndex 2", "bitlane.BinaryIndex 1", "hamming", "jaccard", *NAMES]
    members: dict[str, bytes] = {}
    for name, usual in (("format", words[0]), ("metric", "hamming")):
        word = usual if choose.randrange(4) else choose.choice(words)
        file = io.BytesIO()
        np.save(file, np.array(word if choose.randrange(9) else [word, word]))
        members[name] = file.getvalue()
    sound = io.BytesIO()
    np.save(sound, np.ones((3, 8), np.uint8))
    members["rows"] = npy(choose) if choose.randrange(2) else sound.getvalue()
    if choose.randrange(2):
        own = io.BytesIO()
        np.save(own, np.array(choose.choice([[3, 1, 2], [3, 3, 3], [0, -1, 1], [1]])))
        members["ids"] = npy(choose) if choose.randrange(3) == 0 else own.getvalue()
    members = {name: x for name, x in members.items() if choose.randrange(20)}
    with zipfile.ZipFile(target, "w") as archive:
        for name, whole in members.items():
            compression = zipfile.ZIP_STORED if choose.randrange(5) else zipfile.ZIP_DEFLATED
            surplus = bytes(1 << 22) if name == "rows" and choose.randrange(9) == 0 else b""
            archive.writestr(f"{name}.npy", whole + surplus, compression)
    result = target.getvalue()
    return result if choose.randrange(2) else damaged(choose, result)


def _hostile_tensor(choose: Random, tensor: TensorProto) -> None:
    match choose.randrange(6):
        case 0:
            tensor.dims[:] = [choose.choice([-1, 0, 1, 5, 2**40, 2**62, 2**63 - 1])] * 2
        case 1:
            tensor.data_type = choose.randrange(-2, 30)
        case 2:
            tensor.external_data.add(key="location", value="../../etc/passwd")
        case 3:
            tensor.raw_data = tensor.raw_data + b"1"
        case 4:
            tensor.int32_data.extend([1, 2])
        case _:
            tensor.data_location = TensorProto.EXTERNAL


def _hostile_graph(choose: Random, model: ModelProto) -> None:
    graph = model.graph
    node = choose.choice(graph.node)
    declared = choose.choice([*graph.input, *graph.output])
    match choose.randrange(9):
        case 0:
            node.input.append(choose.choice(graph.node).output[0])
        case 1:
            node.output[0] = choose.choice(NAMES)
        case 2:
            node.op_type = choose.choice([*NAMES, "If", "Loop", "Add", "Xor", "BitShift"])
        case 3:
            declared.name = choose.choice(NAMES)
        case 4:
            axis = declared.type.tensor_type.shape.dim.add()
            axis.dim_param = choose.choice(NAMES)
        case 5:
            declared.type.tensor_type.shape.dim.add(dim_value=choose.choice([-1, 2**62]))
        case 6:
            attribute = node.attribute.add(name=choose.choice(["to", "direction", *NAMES]))
            attribute.type = choose.randrange(15)
            attribute.g.CopyFrom(deep_graph(choose.choice([1, 30, 90])))
        case 7:
            node.domain = choose.choice(NAMES)
        case _:
            graph.name = choose.choice(NAMES)


def deep_graph(depth: int) -> Any:
    """Return a graph whose only node holds a graph, and so on."""
    model = ModelProto()
    graph = model.graph
    for _ in range(depth):
        graph = graph.node.add(op_type="If").attribute.add(name="then_branch", type=5).g
    return model.graph


def onnx_model(choose: Random) -> bytes:
    """Return a model of ONNX with a few places changed, or damaged."""
    model = made_up(choose.randrange(40))[0]
    for _ in range(choose.randrange(1, 3)):
        if model.graph.initializer and choose.randrange(3) == 0:
            _hostile_tensor(choose, choose.choice(model.graph.initializer))
        else:
            _hostile_graph(choose, model)
    content = bytes(model.SerializeToString())
    return content if choose.randrange(2) else damaged(choose, content)
