// Counters of coverage, for up to 64 bits of each of `size` words at once.
//
// A step stores its words, and every eighth step adds them up. Plane k has bit k of all counters,
// so that one operation adds many bits. Of the first `changing` words changes to 0 are counted:
// between a change to 1 and the next one a bit changes to 0, so that those to 1 follow from the
// first and the last value. Of the other words each 1 is counted.

template <size_t size, size_t changing> struct Covered {
  static constexpr size_t STEPS = 8, PLANES = 64, LANES = 4;
  static constexpr size_t padded = (size + LANES - 1) / LANES * LANES;

  // As many words as fit into the registers of most processors; `aligned` as words are.
  typedef uint64_t Lanes __attribute__((vector_size(8 * LANES), aligned(8)));

  uint64_t first[padded], last[padded], planes[PLANES][padded];
  uint64_t begun; // `first` has the values at the first step
  uint64_t steps[STEPS][padded];
  size_t count;

  __attribute__((always_inline)) void store(size_t word, uint64_t value) {
    steps[count][word] = value;
  }

  __attribute__((always_inline)) void end() {
    if (__builtin_expect(++count == STEPS, 0)) add();
  }

  // Counts the steps that are not counted yet.
  void flush() {
    if (!count) return;
    const uint64_t *latest = steps[count - 1];
    for (size_t step = count; step < STEPS; step++)
      for (size_t word = 0; word < padded; word++)
        steps[step][word] = word < changing ? latest[word] : 0;
    add();
  }

  __attribute__((noinline)) void add() {
    if (!begun) __builtin_memcpy(first, steps[0], sizeof first);
    if (!begun) __builtin_memcpy(last, steps[0], sizeof last);
    begun = 1;
    count = 0;
    for (size_t word = 0; word < padded; word += LANES) {
      Lanes x[STEPS];
      for (size_t step = 0; step < STEPS; step++) x[step] = at(&steps[step][word]);
      if (word + LANES <= changing) {
        Lanes before = at(&last[word]);
        at(&last[word]) = x[STEPS - 1];
        for (size_t step = 0; step < STEPS; step++) {
          const Lanes value = x[step];
          x[step] = before & ~value;
          before = value;
        }
      } else {
        for (size_t lane = word; lane < word + LANES && lane < changing; lane++) {
          uint64_t before = last[lane];
          last[lane] = x[STEPS - 1][lane - word];
          for (size_t step = 0; step < STEPS; step++) {
            const uint64_t value = x[step][lane - word];
            x[step][lane - word] = before & ~value;
            before = value;
          }
        }
      }
      Lanes &ones = at(&planes[0][word]), &twos = at(&planes[1][word]);
      Lanes &fours = at(&planes[2][word]), a, b, c, d;
      sum(a, ones, x[0], x[1]);
      sum(b, ones, x[2], x[3]);
      sum(c, twos, a, b);
      sum(a, ones, x[4], x[5]);
      sum(b, ones, x[6], x[7]);
      sum(d, twos, a, b);
      sum(a, fours, c, d);
      for (size_t plane = 3; any(a); plane++) {
        Lanes &bits = at(&planes[plane][word]);
        const Lanes carry = bits & a;
        bits ^= a;
        a = carry;
      }
    }
  }

  static Lanes &at(uint64_t *words) { return *reinterpret_cast<Lanes *>(words); }

  // Adds two bits to `low`; the carry is `high`.
  static void sum(Lanes &high, Lanes &low, Lanes x, Lanes y) {
    const Lanes half = x ^ y;
    high = (x & y) | (half & low);
    low ^= half;
  }

  static bool any(Lanes x) {
    uint64_t found = 0;
    for (size_t lane = 0; lane < LANES; lane++) found |= x[lane];
    return found != 0;
  }
};
