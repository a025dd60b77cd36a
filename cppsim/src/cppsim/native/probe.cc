// Evaluates the programs of probe.h. Their writer checks them.

#include "probe.h"

#include "../cpp/words.h"

namespace {

template <typename Element> uint64_t row(const Instruction &at, uint64_t number) {
  return number < at.b ? reinterpret_cast<const Element *>(at.mask)[number * at.c] : 0;
}

uint64_t merged(const Instruction &at, uint64_t from, uint64_t into) {
  return into | (from >> at.from & at.mask) << at.to;
}

int64_t extended(const Instruction &at, uint64_t value) {
  return int64_t(value << at.from) >> at.from;
}

uint64_t operation(const Instruction &at, uint64_t a, uint64_t b) {
  switch (at.code) {
  case Code::AND: return a & b;
  case Code::OR: return a | b;
  case Code::XOR: return a ^ b;
  case Code::NOT: return ~a;
  case Code::ADD: return a + b;
  case Code::SUBTRACT: return a - b;
  case Code::MULTIPLY: return a * b;
  case Code::NEGATE: return -a;
  case Code::DIVIDE: return word::divide(a, b);
  case Code::DIVIDE_SIGNED: return word::divide_signed(extended(at, a), extended(at, b));
  case Code::MODULO: return word::modulo(a, b);
  case Code::MODULO_SIGNED: return word::modulo_signed(extended(at, a), extended(at, b));
  case Code::EQUAL: return a == b;
  case Code::UNEQUAL: return a != b;
  case Code::LESS: return a < b;
  case Code::LESS_EQUAL: return a <= b;
  case Code::LESS_SIGNED: return extended(at, a) < extended(at, b);
  case Code::LESS_EQUAL_SIGNED: return extended(at, a) <= extended(at, b);
  case Code::ODD: return __builtin_parityll(a);
  case Code::LEFT: return b < 64 ? a << b : 0;
  case Code::RIGHT: return b < 64 ? a >> b : 0;
  case Code::RIGHT_SIGNED: return extended(at, a) >> word::least(b, 63);
  default: __builtin_unreachable();
  }
}

} // namespace

__attribute__((visibility("default"))) uint64_t probe_value(const Program *program,
                                                            const uint64_t *words) {
  uint64_t *const values = program->values;
  for (size_t number = 0; number < program->count; number++) {
    const Instruction &at = program->instructions[number];
    uint64_t value;
    switch (at.code) {
    case Code::CONSTANT: value = at.mask; break;
    case Code::FETCH: value = merged(at, words[at.a], values[at.b]); break;
    case Code::PICK: value = merged(at, values[at.a], values[at.b]); break;
    case Code::SPREAD: value = values[at.b] | (-(values[at.a] & 1) & at.mask); break;
    case Code::ROW_8: value = row<uint8_t>(at, values[at.a]); break;
    case Code::ROW_16: value = row<uint16_t>(at, values[at.a]); break;
    case Code::ROW_32: value = row<uint32_t>(at, values[at.a]); break;
    case Code::ROW_64: value = row<uint64_t>(at, values[at.a]); break;
    case Code::SELECT: value = values[at.a] ? values[at.b] : values[at.c]; break;
    default: value = operation(at, values[at.a], values[at.b]) & at.mask;
    }
    values[number] = value;
  }
  return values[program->count - 1];
}
