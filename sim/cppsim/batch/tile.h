// A tile: instances that go together, a lane of every word each. Its words are `b`, what there is
// once, and the state before and after an edge, `q` and `n`. Rows are those of instance `at` of `of`.
struct Tile {
  W *b, *q, *n;
  uint8_t *rows;
  uint64_t of, at;
  uint64_t turn;
  W active;
};

constexpr uint32_t CYCLES = 0, FAILED = 1, FAILED_AT = 2; // numbers, in the order of their ports

inline uint64_t number_of(const Tile &t, uint32_t which, uint32_t lane) {
  return number(t.b + (NUMBERS + which * 64) * BESIDE, lane);
}

inline void keep_number(const Tile &t, uint32_t which, uint32_t lane, uint64_t value) {
  set_number(t.b + (NUMBERS + which * 64) * BESIDE, lane, value);
}

// Whatever a check says the first time.
OUTLINE void tell(const Tile &t, uint32_t check, W failing) {
  each(failing & t.active, [&](uint32_t lane) {
    if (number_of(t, FAILED, lane)) return;
    keep_number(t, FAILED, lane, check + 1);
    keep_number(t, FAILED_AT, lane, number_of(t, CYCLES, lane) + t.turn);
  });
}

// A part of a phase.
#define CHUNK(name)                                                                                \
  OUTLINE void name(const Tile &t, W *RESTRICT b, const W *RESTRICT q, W *RESTRICT n)
