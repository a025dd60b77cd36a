// Arithmetic that would take too many gates: a number at a time, as in words.h, of two operands of
// `Bits` bits that lie one behind the other.

template <uint32_t Bits> inline void number_of_lane(const W *from, uint32_t lane, uint64_t *to) {
  for (uint32_t k = 0; k < wide::words(Bits); k++) to[k] = 0;
  for (uint32_t k = 0; k < Bits; k++) to[k / 64] |= uint64_t(has(from[k], lane)) << k % 64;
}

#define ARITHMETIC(name)                                                                           \
  template <uint32_t Bits> OUTLINE void name(const Tile &t, const W *operands, W *result) {        \
    for (uint32_t k = 0; k < Bits; k++) result[k] = none();                                        \
    each(t.active, [&](uint32_t lane) {                                                            \
      uint64_t a[wide::words(Bits)], b[wide::words(Bits)], r[wide::words(Bits)];                   \
      number_of_lane<Bits>(operands, lane, a);                                                     \
      number_of_lane<Bits>(operands + Bits, lane, b);                                              \
      wide::name<Bits>(r, a, b);                                                                   \
      for (uint32_t k = 0; k < Bits; k++)                                                          \
        if (r[k / 64] >> k % 64 & 1) add(result[k], lane);                                         \
    });                                                                                            \
  }

ARITHMETIC(multiply)
ARITHMETIC(divide)
ARITHMETIC(modulo)
ARITHMETIC(divide_signed)
ARITHMETIC(modulo_signed)
