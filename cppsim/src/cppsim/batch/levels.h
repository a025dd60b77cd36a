// The phases of a circuit, evaluated by a block of threads from tables, level by level. Words are
// numbered from the tile's first one. `GATES` has the gates; `TABLES` has the calls (reads of memories,
// and arithmetic), the first gate and call of each level, the buffered writes of memories, and the
// numbers of the words of calls and writes.

#ifdef IN_SHARED
// From these addresses the compiler infers that the words are in shared memory.
inline W *words_of(const Tile &) { return shared_words; }
inline Tables &tables() { return *reinterpret_cast<Tables *>(shared_words + RUNNING_WORDS); }
inline void load_tables() {
  EACH(k, sizeof(Tables) / 4)
    reinterpret_cast<uint32_t *>(&tables())[k] = reinterpret_cast<const uint32_t *>(&TABLES)[k];
  TOGETHER();
}
#else
inline W *words_of(const Tile &t) { return t.b; }
inline const Tables &tables() { return TABLES; }
inline void load_tables() {}
#endif

// --- gates ------------------------------------------------------------------------------------------

inline Gate gate_of(uint32_t number, uint32_t end) { return number < end ? GATES[number] : Gate(); }

inline uint32_t number_in(const Gate &gate, uint32_t position) {
  const uint32_t from = 8 + position * NUMBER_BITS, number = from / 64, shift = from % 64;
  return uint32_t(gate.packed[number] >> shift) & ((1u << NUMBER_BITS) - 1);
}

inline Word chosen(Word which, Word ones, Word zeros) { return (which & ones) | (~which & zeros); }

inline void work_out(W *b, const Gate &gate) {
  const W x = b[number_in(gate, 0)], y = b[number_in(gate, 1)], z = b[number_in(gate, 2)];
  Word answers[8];
#pragma unroll
  for (uint32_t k = 0; k < 8; k++) answers[k] = Word(int32_t(gate.packed[0] << (31 - k)) >> 31);
  W result;
#pragma unroll
  for (uint32_t k = 0; k < PARTS; k++) {
    const Word p = part(x, k), q = part(y, k), r = part(z, k);
    const Word low = chosen(q, chosen(p, answers[3], answers[2]), chosen(p, answers[1], answers[0]));
    const Word high = chosen(q, chosen(p, answers[7], answers[6]), chosen(p, answers[5], answers[4]));
    part(result, k) = chosen(r, high, low);
  }
  b[number_in(gate, 3)] = result;
}

// --- lanes ------------------------------------------------------------------------------------------

// How the threads of a warp transpose words: in each of five steps a thread exchanges half of the bits
// of its word with another one, whose number differs in one bit. It keeps the bits in `kept`, and turns
// the other thread's word by `turns` to the positions of the bits that it gave away.
struct Transposer {
  uint32_t own, turns[5]; // `own` is the thread's number in its warp
  Word kept[5];

  Transposer() : own(threadIdx.x % WARP) {
    Word low = 0x0000ffff;
#pragma unroll
    for (uint32_t k = 0; k < 5; k++) {
      const uint32_t distance = WARP / 2 >> k;
      if (k) low ^= low << distance;
      turns[k] = own & distance ? WARP - distance : distance;
      kept[k] = own & distance ? ~low : low;
    }
  }

  // Bit k of the word of thread j becomes bit j of the word of thread k.
  Word transpose(Word word) const {
#pragma unroll
    for (uint32_t k = 0; k < 5; k++) {
      const Word other = __shfl_xor_sync(~0u, word, WARP / 2 >> k);
      word = (word & kept[k]) | (__funnelshift_l(other, other, turns[k]) & ~kept[k]);
    }
    return word;
  }

  // Return the number of this thread's lane, from `bits` words, of which 32 at most.
  Word load(const W *b, const Number *words, uint32_t bits, uint32_t number) const {
    return transpose(own < bits ? part(b[words[own]], number) : Word(0));
  }

  // The same of 64 words at most.
  uint64_t load_long(const W *b, const Number *words, uint32_t bits, uint32_t number) const {
    const uint64_t low = load(b, words, bits, number);
    return bits > WARP ? low | uint64_t(load(b, words + WARP, bits - WARP, number)) << WARP : low;
  }

  // Store the number of this thread's lane to `bits` words, of which 64 at most.
  void store(W *b, const Number *words, uint32_t bits, uint32_t number, uint64_t value) const {
    const Word low = transpose(Word(value));
    if (own < bits) part(b[words[own]], number) = low;
    if (bits <= WARP) return;
    const Word high = transpose(Word(value >> WARP));
    if (own + WARP < bits) part(b[words[own + WARP]], number) = high;
  }
};

// --- calls ------------------------------------------------------------------------------------------

// A warp executes a call for the lanes of a part.
OUTLINE void calculate(W *b, const LevelCall &x, uint32_t number) {
  const Transposer lanes;
  uint64_t first[ARITHMETIC_WORDS], second[ARITHMETIC_WORDS], result[ARITHMETIC_WORDS];
  const Number *const taken = tables().words + x.words, *const given = taken + x.taken;
  for (uint32_t k = 0; k < x.width; k += 64) {
    first[k / 64] = lanes.load_long(b, taken + k, x.width - k, number);
    second[k / 64] = lanes.load_long(b, taken + x.width + k, x.width - k, number);
  }
  arithmetic(x.function, first, second, result);
  for (uint32_t k = 0; k < x.width; k += 64)
    lanes.store(b, given + k, x.width - k, number, result[k / 64]);
}

inline void read(const Tile &t, W *b, const LevelCall &x, uint32_t number, const Transposer &lanes) {
  const Number *const taken = tables().words + x.words, *const given = taken + x.taken;
  const uint32_t lane = lane_of(number, lanes.own);
  const uint32_t row = lanes.load(b, taken, x.taken, number);
#pragma unroll 1
  for (uint32_t k = 0; k < x.width; k += 64) {
    uint64_t found = 0;
    if (row < x.depth && x.element == 64)
      found = element<uint64_t>(t, x.offset, lane, row, x.count, k / 64);
    else if (row < x.depth)
      found = element<uint32_t>(t, x.offset, lane, row, x.count, k / 64);
    lanes.store(b, given + k, x.width - k, number, found);
  }
}

// --- phases -----------------------------------------------------------------------------------------

inline Gate first_gate(const LevelEnds *level) {
  return gate_of(level[0].gates + WORKER, level[1].gates);
}

// Evaluate the gates of a level; `gate` is the first one of this thread.
inline void work_out_all(W *b, const LevelEnds *level, Gate gate) {
  const uint32_t end = level[1].gates;
  for (uint32_t k = level[0].gates + WORKER; k < end;) {
    const Gate next = gate_of(k += WORKERS, end);
    work_out(b, gate);
    gate = next;
  }
}

// Evaluate levels up to the next one with calls; return its number. A worker loads its first gate of
// the level after next meanwhile, so this function calls none: a gate comes from the second cache.
OUTLINE uint32_t plain_levels(const Tile &t, uint32_t level, uint32_t last) {
  W *const b = words_of(t);
  const LevelEnds *const levels = tables().levels;
  Gate gate = first_gate(levels + level), following = first_gate(levels + level + 1);
  for (; level < last && levels[level].calls == levels[level + 1].calls; level++) {
    const Gate next = first_gate(levels + level + 2);
    work_out_all(b, levels + level, gate);
    gate = following;
    following = next;
    TOGETHER();
  }
  return level;
}

// This function is short because a block also waits for its instructions.
OUTLINE void level_with_calls(const Tile &t, uint32_t level) {
  W *const b = words_of(t);
  const LevelEnds *const ends = tables().levels + level;
  const LevelCall *const x = tables().calls + ends[0].calls;
  const uint32_t calls = (ends[1].calls - ends[0].calls) * PARTS;
  const Transposer lanes;
#pragma unroll 1
  for (uint32_t k = OWN_WARP; k < calls; k += WARPS) {
    if (x[k / PARTS].function) calculate(b, x[k / PARTS], k % PARTS);
    else read(t, b, x[k / PARTS], k % PARTS, lanes);
  }
  work_out_all(b, ends, first_gate(ends));
  TOGETHER();
}

inline void phase(const Tile &t, uint32_t level, uint32_t count) {
  const uint32_t last = level + count;
  while ((level = plain_levels(t, level, last)) < last) level_with_calls(t, level++);
}

template <class T> inline void keep(T &to, bool whole, uint64_t value, uint64_t mask) {
  // Bits beyond a row's width are 0 and are not read: a whole row need not be read before.
  if (whole) to = T(value);
  else if (mask) to = T((to & ~mask) | (value & mask));
}

// A warp executes a write for the lanes of a part.
inline void write(const Tile &t, const W *b, const LevelStore &x, uint32_t number,
                  const Transposer &lanes) {
  const Number *const address = tables().words + x.words, *const data = address + x.address;
  const Number *const enable = data + x.width;
  const uint32_t lane = lane_of(number, lanes.own);
  const bool active = has(t.active, lane) && (!x.single || has(b[*enable], lane));
  if (!__any_sync(~0u, active)) return;
  const uint32_t row = lanes.load(b, address, x.address, number);
#pragma unroll 1
  for (uint32_t k = 0; k < x.width; k += 64) {
    const uint32_t bits = x.width - k < 64 ? x.width - k : 64;
    const uint64_t value = lanes.load_long(b, data + k, bits, number);
    const uint64_t whole = ~uint64_t(0) >> (64 - bits);
    const uint64_t mask = x.single ? whole : lanes.load_long(b, enable + k, bits, number);
    if (!active || row >= x.depth) continue;
    if (x.element == 64)
      keep(element<uint64_t>(t, x.offset, lane, row, x.count, k / 64), mask == whole, value, mask);
    else
      keep(element<uint32_t>(t, x.offset, lane, row, x.count, k / 64), mask == whole, value, mask);
  }
}

// The last write of a memory at an edge wins, so its writes are executed in rounds.
OUTLINE void store(const Tile &t) {
  const Transposer lanes;
  for (uint32_t round = 0; round < STORE_ROUNDS; round++) {
    for (uint32_t k = OWN_WARP; k < STORE_COUNT * PARTS; k += WARPS) {
      const LevelStore &x = tables().stores[k / PARTS];
      if (x.round == round) write(t, words_of(t), x, k % PARTS, lanes);
    }
    TOGETHER();
  }
}

inline void step(const Tile &t) { phase(t, STEP_LEVELS, STEP_LEVEL_COUNT); }
inline void levels(const Tile &t) { phase(t, LEVELS_LEVELS, LEVELS_LEVEL_COUNT); }
inline void settle(const Tile &t) { phase(t, SETTLE_LEVELS, SETTLE_LEVEL_COUNT); }

inline W &word_of(const Tile &t, uint32_t bit) {
  return words_of(t)[(is_state(bit) ? STATE : 0) + (bit >> 1)];
}

// The levels have already overwritten the state.
inline void advance(Tile &) {}

// --- columns ----------------------------------------------------------------------------------------

inline uint64_t operand(const Share &share, uint64_t column, uint32_t lane) {
  switch (share.bytes) {
  case 1: return share.operand<uint8_t>(column)[lane];
  case 2: return share.operand<uint16_t>(column)[lane];
  case 4: return share.operand<uint32_t>(column)[lane];
  }
  return share.operand<uint64_t>(column)[lane];
}

// A warp moves a column for the lanes of a part.
OUTLINE void take(const Tile &t, const Share &share, uint32_t port, uint64_t column, const W &whose) {
  const uint32_t *const bits = BITS + PORTS[port], count = PORTS[port + 1] - PORTS[port];
  const Transposer lanes;
  for (uint32_t number = OWN_WARP; number < PARTS; number += WARPS) {
    const Word own = part(whose, number);
    const uint32_t bit = lanes.own, lane = lane_of(number, bit);
    const uint64_t value = own >> bit & 1 ? operand(share, column, lane) : uint64_t(0);
    for (uint32_t k = 0; k < count; k += WARP) {
      const Word word = lanes.transpose(Word(value >> k));
      if (k + bit >= count) continue;
      Word &to = part(word_of(t, bits[k + bit]), number);
      to = (to & ~own) | (word & own);
    }
  }
}

OUTLINE void give(const Tile &t, const Share &share, uint32_t port, uint64_t column, const W &whose) {
  const uint32_t *const bits = BITS + PORTS[port], count = PORTS[port + 1] - PORTS[port];
  const Transposer lanes;
  for (uint32_t number = OWN_WARP; number < PARTS; number += WARPS) {
    const uint32_t bit = lanes.own, lane = lane_of(number, bit);
    uint64_t value = 0;
    for (uint32_t k = 0; k < count; k += WARP) {
      const Word word = k + bit < count ? part(word_of(t, bits[k + bit]), number) : Word(0);
      value |= uint64_t(lanes.transpose(word)) << k;
    }
    if (has(whose, lane)) share.result(column)[lane] = value;
  }
}
