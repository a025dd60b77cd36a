// Words of processor cores: a vector holds the same bit of `LANES` instances, as many as the widest
// registers do. `Word` is what a vector has `PARTS` of. The source says `LANES` before this. A core
// does all the work of a tile.

typedef uint64_t Word;
constexpr uint32_t WORD_BITS = 64, PARTS = LANES / 64;
constexpr bool SIDE_BY_SIDE = false; // rows of an instance lie in one piece
typedef Word W __attribute__((vector_size(LANES / 8), may_alias));

#define OUTLINE static __attribute__((noinline))
#define RESTRICT __restrict__
#define FAST __attribute__((optimize("O3")))
#define GIVEN const W & // loaded where it is used: there are few registers
#define TABLE static const

#define EACH(k, count) for (uint32_t k = 0; k < (count); k++)
#define FIRST true
#define TOGETHER()
#define DELEGATE(work) perform(work)

static thread_local const volatile uint32_t *stop; // not 0 once the caller gives up
#define STOPPED (*stop != 0)

inline W none() { return W{}; }
inline W all() { return ~W{}; }
inline Word &part(W &w, uint32_t number) { return reinterpret_cast<Word *>(&w)[number]; }
inline Word part(const W &w, uint32_t number) { return reinterpret_cast<const Word *>(&w)[number]; }
// Lanes are counted across the parts first: so the squares that `transpose` turns give numbers in the
// order of lanes.
inline uint32_t part_of(uint32_t lane) { return lane % PARTS; }
inline uint32_t bit_of(uint32_t lane) { return lane / PARTS; }
inline uint32_t lane_of(uint32_t number, uint32_t bit) { return bit * PARTS + number; }
inline uint32_t lowest(Word word) { return uint32_t(__builtin_ctzll(word)); }

// A number of 64 bits of a lane, in the 64 words from `first` on.
inline uint64_t number(const W *first, uint32_t lane) {
  return reinterpret_cast<const uint64_t *>(first)[lane];
}
inline void set_number(W *first, uint32_t lane, uint64_t value) {
  reinterpret_cast<uint64_t *>(first)[lane] = value;
}

#include SOURCE // the design, and the interpreter of programs in batch.h

// The entry: a tile, of instances whose rows lie in one piece each.

extern "C" __attribute__((visibility("default"))) void
batch_run(W *words, uint8_t *rows, const Instruction *program, uint64_t count,
          const uint8_t *input, uint32_t bytes, uint64_t *output, uint64_t instances, uint64_t tile,
          const volatile uint32_t *stopped) {
  stop = stopped;
  const uint64_t i = tile * LANES, left = instances - i;
  const uint32_t lanes = uint32_t(left < LANES ? left : LANES);
  W *const own = words + tile * CORE_WORDS, *const state = own + STATE;
  Group groups[LANES];
  Work work;
  static_assert(sizeof groups + sizeof work < 1 << 20, "they lie on the stack");
  work.share = {input + i * bytes, output + i, instances, bytes, lanes};
  work.t = {own, state, state + STATES, own + CORE_WORDS - ENDED_WORDS, rows + i * ROW_BYTES, 0, none()};
  Run(work, groups, program, count).run();
}
