// Phases of a circuit by a block of threads, from tables: gates and calls level by level. Words are
// counted from the tile's first on. The tables, of what tables.h says:
//   GATES, OUTS      of a gate its answers and three words, and the word that it gives
//   CALLS, TAKEN     what gates do not do: reads of memories, arithmetic; the words that they take
//   RESULTS          bits of what calls have staged, and the words that they give
//   LEVELS           of a level where its gates, calls and results end
//   STORES           writes of memories that wait after a step

inline W logic(uint32_t table, W a, W b, W c) {
  W answers[8];
#pragma unroll
  for (uint32_t k = 0; k < 8; k++) answers[k] = W(0) - W(table >> k & 1);
#pragma unroll
  for (uint32_t k = 0; k < 4; k++)
    answers[k] = (answers[2 * k] & ~a) | (answers[2 * k + 1] & a);
#pragma unroll
  for (uint32_t k = 0; k < 2; k++)
    answers[k] = (answers[2 * k] & ~b) | (answers[2 * k + 1] & b);
  return (answers[0] & ~c) | (answers[1] & c);
}

inline uint64_t row_element(const Tile &t, const LevelCall &x, uint32_t lane, uint64_t number) {
  if (x.element == 64) return element<uint64_t>(t, x.offset, lane, number);
  return element<uint32_t>(t, x.offset, lane, number);
}

inline uint64_t lane_number(const W *words, const uint32_t *places, uint32_t bits, uint32_t lane) {
  uint64_t value = 0;
#pragma unroll 8
  for (uint32_t k = 0; k < bits; k++) value |= uint64_t(words[places[k]] >> lane & 1) << k;
  return value;
}

// What a call results in for a lane, left in words of its stage.
inline void stage(const Tile &t, const LevelCall &x, uint32_t lane) {
  W *to = t.b + x.stage + lane;
  if (x.function) {
    uint64_t a[ARITHMETIC_WORDS], b[ARITHMETIC_WORDS], r[ARITHMETIC_WORDS];
    for (uint32_t k = 0; k < x.width; k += 64) {
      const uint32_t bits = x.width - k < 64 ? x.width - k : 64;
      a[k / 64] = lane_number(t.b, TAKEN + x.taken + k, bits, lane);
      b[k / 64] = lane_number(t.b, TAKEN + x.taken + x.width + k, bits, lane);
    }
    arithmetic(x.function, a, b, r);
    for (uint32_t k = 0; k < x.width; k += 32) to[k] = W(r[k / 64] >> k % 64);
    return;
  }
  const uint64_t row = lane_number(t.b, TAKEN + x.taken, x.address, lane);
  for (uint32_t k = 0; k < x.width; k += 32) {
    const uint64_t found =
        row < x.depth && t.at + lane < t.of
            ? row_element(t, x, lane, row * x.count + k / 64)
            : uint64_t(0);
    to[k] = W(found >> k % 64);
  }
}

inline void phase(const Tile &t, const LevelEnds *levels, uint32_t count) {
  LevelEnds from = levels[0];
  for (uint32_t level = 1; level <= count; level++) {
    const LevelEnds to = levels[level];
    EACH(k, to.gates - from.gates) {
      const uint64_t gate = GATES[from.gates + k];
      const W a = t.b[gate & 0x3ffff], b = t.b[gate >> 18 & 0x3ffff], c = t.b[gate >> 36 & 0x3ffff];
      t.b[OUTS[from.gates + k]] = logic(uint32_t(gate >> 54), a, b, c);
    }
    if (to.calls != from.calls) {
      EACH(k, (to.calls - from.calls) * LANES)
        stage(t, CALLS[from.calls + k / LANES], k % LANES);
      TOGETHER();
      EACH(k, to.results - from.results) {
        const ResultBit x = RESULTS[from.results + k];
        W w = 0;
#pragma unroll
        for (uint32_t lane = 0; lane < LANES; lane++)
          w |= (t.b[x.stage + lane] >> x.bit & 1) << lane;
        t.b[x.word] = w;
      }
    }
    TOGETHER();
    from = to;
  }
}

// Of writes of one memory at an edge the last one wins: they take turns.
inline void store(const Tile &t) {
  for (uint32_t round = 0; round < STORE_ROUNDS; round++) {
    EACH(k, STORE_COUNT * LANES) {
      const LevelStore &x = STORES[k / LANES];
      const uint32_t lane = k % LANES;
      if (x.round != round || !has(t.active, lane)) continue;
      const W *address = t.b + x.first, *data = address + x.address, *enable = data + x.width;
      if (x.single && !has(*enable, lane)) continue;
      uint64_t row = 0;
#pragma unroll 8
      for (uint32_t j = 0; j < x.address; j++) row |= uint64_t(has(address[j], lane)) << j;
      if (row >= x.depth) continue;
      for (uint32_t j = 0; j < x.width; j += x.element) {
        const uint32_t bits = x.width - j < x.element ? x.width - j : x.element;
        uint64_t value = 0, mask = ~uint64_t(0) >> (64 - bits);
#pragma unroll 8
        for (uint32_t i = 0; i < bits; i++) value |= uint64_t(has(data[j + i], lane)) << i;
        if (!x.single) {
          mask = 0;
          for (uint32_t i = 0; i < bits; i++) mask |= uint64_t(has(enable[j + i], lane)) << i;
        }
        const uint64_t number = row * x.count + j / 64;
        if (x.element == 64) {
          uint64_t &to = element<uint64_t>(t, x.offset, lane, number);
          to = (to & ~mask) | (value & mask);
        } else {
          uint32_t &to = element<uint32_t>(t, x.offset, lane, number);
          to = uint32_t((to & ~mask) | (value & mask));
        }
      }
    }
    TOGETHER();
  }
}

inline void step(Tile &t) { phase(t, LEVELS + STEP_LEVELS, STEP_LEVEL_COUNT); }
inline void levels(Tile &t) { phase(t, LEVELS + LEVELS_LEVELS, LEVELS_LEVEL_COUNT); }
inline void settle(Tile &t) { phase(t, LEVELS + SETTLE_LEVELS, SETTLE_LEVEL_COUNT); }

// What follows is the state from now on, and the state what was before.
inline void advance(Tile &t) {
  EACH(k, STATES) {
    const W before = t.q[k];
    t.q[k] = t.n[k];
    t.n[k] = before;
  }
  TOGETHER();
}
