// Words of a GPU: a block of threads shares the work of a tile, whose words hold the same bit of `LANES`
// instances, 32 in each part. The source says `LANES` before this, and `IN_SHARED` where a tile's words
// are in the block's shared memory. Its compiler has no headers: types come first. All functions are
// the device's, by an option.

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef decltype(sizeof(0)) size_t;
#define SIZE_MAX (~uint64_t(0))

typedef uint32_t Word;
constexpr uint32_t WORD_BITS = 32, PARTS = LANES / WORD_BITS;
constexpr bool SIDE_BY_SIDE = true; // the same row of all instances lies in one piece

struct alignas(sizeof(Word) * PARTS) W {
  Word parts[PARTS];
};

#ifdef IN_SHARED
#ifndef SHARED_WORDS
#define SHARED_WORDS extern __shared__ W shared_words[]
#endif
SHARED_WORDS;
#endif

inline Word &part(W &w, uint32_t number) { return w.parts[number]; }
inline Word part(const W &w, uint32_t number) { return w.parts[number]; }
inline uint32_t part_of(uint32_t lane) { return lane / WORD_BITS; }
inline uint32_t bit_of(uint32_t lane) { return lane % WORD_BITS; }
inline uint32_t lane_of(uint32_t number, uint32_t bit) { return number * WORD_BITS + bit; }
inline uint32_t lowest(Word word) { return uint32_t(__ffs(int(word)) - 1); }

inline W filled(Word word) {
  W w;
#pragma unroll
  for (uint32_t k = 0; k < PARTS; k++) w.parts[k] = word;
  return w;
}
inline W none() { return filled(0); }
inline W all() { return filled(~Word(0)); }

inline W &operator&=(W &w, const W &other) {
#pragma unroll
  for (uint32_t k = 0; k < PARTS; k++) w.parts[k] &= other.parts[k];
  return w;
}
inline W &operator|=(W &w, const W &other) {
#pragma unroll
  for (uint32_t k = 0; k < PARTS; k++) w.parts[k] |= other.parts[k];
  return w;
}
inline W operator~(W w) {
#pragma unroll
  for (uint32_t k = 0; k < PARTS; k++) w.parts[k] = ~w.parts[k];
  return w;
}
inline W operator&(W w, const W &other) { return w &= other; }
inline W operator|(W w, const W &other) { return w |= other; }

// A number of 64 bits of a lane, in the 64 words from `first` on.
inline uint64_t number(const W *first, uint32_t lane) {
  const Word *const halves = first->parts + 2 * lane;
  return halves[0] | uint64_t(halves[1]) << 32;
}
inline void set_number(W *first, uint32_t lane, uint64_t value) {
  Word *const halves = first->parts + 2 * lane;
  halves[0] = Word(value);
  halves[1] = Word(value >> 32);
}

#define BLOCKS
#define OUTLINE static __noinline__
#define TABLE static __device__ const

// Of a block's threads those of the first warp but one do nothing: that one follows the program, and
// the others, the workers, do what it asks for. With them in its warp all would be done twice.
constexpr uint32_t WARP = 32;
#define WORKER (threadIdx.x - WARP)
#define WORKERS (blockDim.x - WARP)
#define FIRST (WORKER == 0)

#ifndef BARRIER
#define BARRIER(number, threads)                                                                   \
  asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory")
#define BARRIER_OF_ALL asm volatile("barrier.sync 0;" ::: "memory")
#endif
inline void all_together() { BARRIER_OF_ALL; }
inline void workers_together() { BARRIER(1, WORKERS); }

// Warps of workers; the last one has number 0, as the first ones have most to do otherwise.
#define WARPS (WORKERS / WARP)
#define OWN_WARP ((WORKERS - 1 - WORKER) / WARP)

// What all workers do: `count` things, shared among them; and wait until all have come.
#define EACH(k, count) for (uint32_t k = WORKER; k < (count); k += WORKERS)
#define TOGETHER() workers_together()
#define DELEGATE(work) all_together(), all_together()
#define STOPPED false // a launch runs to its end

#include SOURCE // the design, and the interpreter of programs in batch.h

// The entry: a tile a block, and the same row of its instances in one piece. While it
// runs, a block's words are in its shared memory, if they fit there.

extern "C" __global__ void __launch_bounds__(1024, 1)
batch_run(W *words, uint8_t *rows, const Instruction *program, uint64_t count, const uint8_t *input,
          uint32_t bytes, uint64_t *output, uint64_t instances) {
  __shared__ Work work;
  static_assert(sizeof(Work) <= OWN_BYTES, "more than was left for it");
  W *const kept = words + uint64_t(blockIdx.x) * BLOCK_WORDS + GROUP_WORDS;
#ifdef IN_SHARED
  W *const own = shared_words;
#else
  W *const own = kept;
#endif
  if (threadIdx.x < WARP) {
    if (threadIdx.x) return;
    const uint64_t i = uint64_t(blockIdx.x) * LANES, left = instances - i;
    const uint32_t lanes = uint32_t(left < LANES ? left : LANES);
    static_assert(sizeof(Group) * LANES <= GROUP_WORDS * sizeof(W), "they lie before a tile's words");
    Group *const groups = reinterpret_cast<Group *>(kept - GROUP_WORDS);
    W *const ended = kept + BLOCK_WORDS - GROUP_WORDS - ENDED_WORDS;
    work.share = {input + i * bytes, output + i, instances, bytes, lanes};
    work.t = {own, own + STATE, own + STATE, ended, rows + i * ROW_BYTES, 0, none()};
    Run run(work, groups, program, count);
    all_together();
    run.run();
    work.task = QUIT;
    all_together();
    return;
  }
  load_tables();
  if (own != kept) EACH(k, TILE_WORDS) own[k] = kept[k];
  for (all_together();;) {
    all_together();
    if (work.task == QUIT) break;
    perform(work);
    all_together();
  }
  if (own != kept) EACH(k, TILE_WORDS) kept[k] = own[k];
}
