// Words of lanes, and tiles: instances that go together, a lane of every word each.

inline bool any(const W &w) {
  Word found = 0;
  for (uint32_t k = 0; k < PARTS; k++) found |= part(w, k);
  return found != 0;
}

inline bool has(const W &w, uint32_t lane) { return part(w, part_of(lane)) >> bit_of(lane) & 1; }

inline void add(W &w, uint32_t lane) { part(w, part_of(lane)) |= Word(1) << bit_of(lane); }

template <class Do> inline void each(const W &lanes, Do work) {
  for (uint32_t k = 0; k < PARTS; k++)
    for (Word left = part(lanes, k); left; left &= left - 1) work(lane_of(k, lowest(left)));
}

// A tile's words: `b`, the state `q`, and on cores the next state `n`. `ended` is the state of instances
// whose program has ended.
struct Tile {
  W *b, *q, *n, *ended;
  uint8_t *rows;
  uint64_t turn;
  W active;
};

// Operands, of `bytes` each, and results of a tile; a column is one of each of all `instances`.
struct Share {
  const uint8_t *input;
  uint64_t *output;
  uint64_t instances;
  uint32_t bytes, lanes;

  template <class T> const T *operand(uint64_t column) const {
    return reinterpret_cast<const T *>(input) + column * instances;
  }
  uint64_t *result(uint64_t column) const { return output + column * instances; }
};

// Return whether an entry of BITS is in the state; the word's number is in the bits above.
inline bool is_state(uint32_t bit) { return bit & 1; }

constexpr uint32_t CYCLES = 0, FAILED = 1, FAILED_AT = 2; // numbers, in the order of their ports

inline uint64_t number_of(const Tile &t, uint32_t which, uint32_t lane) {
  return number(t.b + NUMBERS + which * 64, lane);
}

inline void keep_number(const Tile &t, uint32_t which, uint32_t lane, uint64_t value) {
  set_number(t.b + NUMBERS + which * 64, lane, value);
}

// Element `k` of `count` of a lane's row, of the memory that begins at byte `offset` of an instance.
template <class T>
inline T &element(const Tile &t, uint64_t offset, uint32_t lane, uint64_t row, uint32_t count,
                  uint32_t k) {
  if (SIDE_BY_SIDE)
    return reinterpret_cast<T *>(t.rows + offset * LANES)[(row * LANES + lane) * count + k];
  return reinterpret_cast<T *>(t.rows + lane * ROW_BYTES + offset)[row * count + k];
}
