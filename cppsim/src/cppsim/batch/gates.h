// Gates of up to three inputs on words: `lut<T>` answers by bit `a | b << 1 | c << 2` of T. The source
// says `TERNARY` where the processor has an instruction for that.

template <uint32_t T> inline W lut(W a) {
  static_assert((T & 3) == 1, "of one input there is but the negation");
  return ~a;
}

template <uint32_t T> inline W lut(W a, W b) {
  switch (T & 15) {
  case 0: return none();
  case 1: return ~(a | b);
  case 2: return a & ~b;
  case 3: return ~b;
  case 4: return b & ~a;
  case 5: return ~a;
  case 6: return a ^ b;
  case 7: return ~(a & b);
  case 8: return a & b;
  case 9: return ~(a ^ b);
  case 10: return a;
  case 11: return a | ~b;
  case 12: return b;
  case 13: return b | ~a;
  case 14: return a | b;
  }
  return all();
}

template <uint32_t T> inline W lut(W a, W b, W c) {
#if defined(TERNARY)
  typedef long long Quads __attribute__((vector_size(64)));
  return (W)__builtin_ia32_pternlogq512_mask((Quads)c, (Quads)b, (Quads)a, T, uint8_t(-1));
#endif
  const W low = lut<(T & 15)>(a, b), high = lut<(T >> 4 & 15)>(a, b);
  return low ^ (c & (low ^ high));
}

// Of words with every second run of `j` bits, those that are counted first.
constexpr Word first_runs(uint32_t j) { return Word(~Word(0)) / ((Word(1) << j) + 1); }

// Bit k of word i of every square of WORD_BITS words becomes bit i of word k. Of the words given,
// those from `Given` on are 0; of the result, those from `Asked` on are not asked for. `Rows` are left
// to look at, in which squares of `J` words change places.
template <uint32_t Given, uint32_t Asked, uint32_t J = WORD_BITS / 2, uint32_t Rows = WORD_BITS>
FAST inline void transpose(W *m) {
  constexpr Word MASK = first_runs(J);
  constexpr bool GROWS = Given <= J, SHRINKS = !GROWS && Asked <= J && Rows == 2 * J;
  for (uint32_t k = 0; k < Rows; k++) {
    if (k & J) continue;
    if (GROWS) {
      if ((k & (J - 1)) >= Given) continue;
      m[k + J] = m[k] >> J & MASK;
      m[k] &= MASK;
    } else if (SHRINKS) {
      m[k] = (m[k] & MASK) | (m[k + J] & MASK) << J;
    } else {
      const W t = ((m[k] >> J) ^ m[k + J]) & MASK;
      m[k] ^= t << J;
      m[k + J] ^= t;
    }
  }
  if constexpr (J > 1) transpose<Given, Asked, J / 2, SHRINKS ? J : Rows>(m);
}
