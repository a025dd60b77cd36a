// Words of lanes, and tiles: instances that go together, a lane of every word each.

inline bool any(const W &w) {
  Word found = 0;
  for (uint32_t k = 0; k < PARTS; k++) found |= part(w, k);
  return found != 0;
}

// Lanes are counted across the parts first: so the squares that `transpose` turns give numbers in the
// order of lanes.
inline bool has(const W &w, uint32_t lane) { return part(w, lane % PARTS) >> lane / PARTS & 1; }

inline void flip(W &w, uint32_t lane) { part(w, lane % PARTS) ^= Word(1) << lane / PARTS; }

inline void add(W &w, uint32_t lane) { part(w, lane % PARTS) |= Word(1) << lane / PARTS; }

template <class Do> inline void each(const W &lanes, Do work) {
  for (uint32_t k = 0; k < PARTS; k++)
    for (Word left = part(lanes, k); left; left &= left - 1) work(lowest(left) * PARTS + k);
}

// A tile's words are `b`, what there is once, and the state before and after an edge, `q` and `n`;
// `ended` is the state of those that have ended. Rows are those of instance `at` of `of`.
struct Tile {
  W *b, *q, *n, *ended;
  uint8_t *rows;
  uint64_t of, at;
  uint64_t turn;
  W active;
};

constexpr uint32_t CYCLES = 0, FAILED = 1, FAILED_AT = 2; // numbers, in the order of their ports

inline uint64_t number_of(const Tile &t, uint32_t which, uint32_t lane) {
  return number(t.b + NUMBERS + which * 64, lane);
}

inline void keep_number(const Tile &t, uint32_t which, uint32_t lane, uint64_t value) {
  set_number(t.b + NUMBERS + which * 64, lane, value);
}

template <class T>
inline T &element(const Tile &t, uint64_t offset, uint32_t lane, uint64_t number) {
  if (SIDE_BY_SIDE)
    return reinterpret_cast<T *>(t.rows + offset * t.of)[number * t.of + t.at + lane];
  return reinterpret_cast<T *>(t.rows + lane * ROW_BYTES + offset)[number];
}
