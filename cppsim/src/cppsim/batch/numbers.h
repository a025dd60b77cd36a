// Reads and writes of memories by cores: addresses and rows are turned from words of lanes to numbers,
// and back. A memory has rows of `Width` bits in `Count` elements T, from byte `Offset` of
// an instance on.

// A number of up to WORD_BITS bits in each lane, as `numbers` makes them of `Bits` words,
// and `words` turns them back.
struct alignas(sizeof(W)) Numbers {
  W m[WORD_BITS];
  Word &operator[](uint32_t lane) { return reinterpret_cast<Word *>(m)[lane]; }
};

template <uint32_t Bits> inline void numbers(Numbers &to, const W *from) {
  for (uint32_t k = 0; k < WORD_BITS; k++) to.m[k] = k < Bits ? from[k] : none();
  transpose<Bits, WORD_BITS>(to.m);
}

template <uint32_t Bits> inline void words(W *to, Numbers &from) {
  transpose<WORD_BITS, Bits>(from.m);
  for (uint32_t k = 0; k < Bits; k++) to[k] = from.m[k];
}

constexpr uint32_t bits_left(uint32_t width, uint32_t low) {
  return width - low < WORD_BITS ? width - low : WORD_BITS;
}

template <uint32_t Low, uint32_t A, class T, uint32_t Count, uint32_t Width, uint32_t Depth,
          uint64_t Offset>
FAST inline void read_from(const Tile &t, Numbers &at, W *row) {
  Numbers value;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    const uint64_t number = at[lane];
    const bool there = Depth >> A || number < Depth;
    const uint64_t found =
        there ? element<T>(t, Offset, lane, number, Count, Low / 64) : uint64_t(0);
    value[lane] = Word(found >> Low % 64);
  }
  words<bits_left(Width, Low)>(row + Low, value);
  if constexpr (Low + WORD_BITS < Width)
    read_from<Low + WORD_BITS, A, T, Count, Width, Depth, Offset>(t, at, row);
}

template <uint32_t A, class T, uint32_t Count, uint32_t Width, uint32_t Depth, uint64_t Offset>
OUTLINE FAST void read_row(const Tile &t, const W *address, W *row) {
  Numbers at;
  numbers<A>(at, address);
  read_from<0, A, T, Count, Width, Depth, Offset>(t, at, row);
}

template <uint32_t Low, bool Single, class T, uint32_t Count, uint32_t Width, uint32_t Depth,
          uint64_t Offset>
inline void write_to(const Tile &t, Numbers &at, const W *data, const W *enable, const W &lanes) {
  constexpr uint32_t BITS = bits_left(Width, Low);
  Numbers value, enabled;
  numbers<BITS>(value, data + Low);
  if (!Single) numbers<BITS>(enabled, enable + Low);
  each(lanes, [&](uint32_t lane) {
    if (at[lane] >= Depth) return;
    T &row = element<T>(t, Offset, lane, at[lane], Count, Low / 64);
    const Word whole = Word(~Word(0)) >> (WORD_BITS - BITS), own = Single ? whole : enabled[lane];
    const uint64_t mask = uint64_t(own) << Low % 64;
    row = T((row & ~mask) | (uint64_t(value[lane]) << Low % 64 & mask));
  });
  if constexpr (Low + WORD_BITS < Width)
    write_to<Low + WORD_BITS, Single, T, Count, Width, Depth, Offset>(t, at, data, enable, lanes);
}

// What waits in words: address, data, and one enable or one a bit.
template <uint32_t A, bool Single, class T, uint32_t Count, uint32_t Width, uint32_t Depth,
          uint64_t Offset>
OUTLINE void write_row(const Tile &t, const W *given) {
  const W *data = given + A, *enable = data + Width;
  W lanes = enable[0];
  if (!Single)
    for (uint32_t k = 1; k < Width; k++) lanes |= enable[k];
  lanes &= t.active;
  if (!any(lanes)) return;
  Numbers at;
  numbers<A>(at, given);
  write_to<0, Single, T, Count, Width, Depth, Offset>(t, at, data, enable, lanes);
}

inline W &word_of(const Tile &t, uint32_t bit) { return (is_state(bit) ? t.q : t.b)[bit >> 1]; }

// --- columns ----------------------------------------------------------------------------------------

// Turn numbers to words, of which the first `bits` are needed.
inline void to_words(Numbers &from, uint32_t bits) {
  if (bits == 1) transpose<WORD_BITS, 1>(from.m);
  else if (bits <= 8) transpose<WORD_BITS, 8>(from.m);
  else if (bits <= 16) transpose<WORD_BITS, 16>(from.m);
  else if (bits <= 32) transpose<WORD_BITS, 32>(from.m);
  else transpose<WORD_BITS, 64>(from.m);
}

// Turn words to numbers; those from `bits` on are 0.
inline void to_numbers(Numbers &from, uint32_t bits) {
  if (bits == 1) transpose<1, WORD_BITS>(from.m);
  else if (bits <= 8) transpose<8, WORD_BITS>(from.m);
  else if (bits <= 16) transpose<16, WORD_BITS>(from.m);
  else if (bits <= 32) transpose<32, WORD_BITS>(from.m);
  else transpose<64, WORD_BITS>(from.m);
}

template <class T> FAST inline void load(Numbers &to, const T *from, uint32_t lanes) {
  for (uint32_t lane = 0; lane < lanes; lane++) to[lane] = from[lane];
}

OUTLINE FAST void take(const Tile &t, const Share &share, uint32_t port, uint64_t column, W whose) {
  Numbers value;
  switch (share.bytes) {
  case 1: load(value, share.operand<uint8_t>(column), share.lanes); break;
  case 2: load(value, share.operand<uint16_t>(column), share.lanes); break;
  case 4: load(value, share.operand<uint32_t>(column), share.lanes); break;
  case 8: load(value, share.operand<uint64_t>(column), share.lanes); break;
  }
  const uint32_t *const bits = BITS + PORTS[port], count = PORTS[port + 1] - PORTS[port];
  to_words(value, count);
  for (uint32_t k = 0; k < count; k++) {
    W &w = word_of(t, bits[k]);
    w = (w & ~whose) | (value.m[k] & whose);
  }
}

OUTLINE FAST void give(const Tile &t, const Share &share, uint32_t port, uint64_t column, W whose) {
  const uint32_t *const bits = BITS + PORTS[port], count = PORTS[port + 1] - PORTS[port];
  Numbers value;
  for (uint32_t k = 0; k < WORD_BITS; k++) value.m[k] = k < count ? word_of(t, bits[k]) : none();
  to_numbers(value, count);
  uint64_t *const to = share.result(column);
  if (!any(~whose))
    for (uint32_t lane = 0; lane < LANES; lane++) to[lane] = value[lane];
  else each(whose, [&](uint32_t lane) { to[lane] = value[lane]; });
}

// What follows is the state from now on, and the state what was before.
inline void advance(Tile &t) {
  W *const before = t.q;
  t.q = t.n;
  t.n = before;
}

// A part of a phase.
#define CHUNK(name)                                                                                \
  OUTLINE void name(const Tile &t, W *RESTRICT b, const W *RESTRICT q, W *RESTRICT n)

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
