// Words of a GPU: 32 bits hold the same bit of 32 instances, a tile, and the threads of a block share
// the work of it. Its compiler has no headers: types come first. All functions are the device's, by an
// option.

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

constexpr uint32_t LANES = 32;
typedef uint32_t Word;
constexpr uint32_t WORD_BITS = 32, PARTS = 1;
constexpr bool SIDE_BY_SIDE = true; // the same row of all instances lies in one piece
typedef uint32_t W;

#define BLOCKS
#ifndef BARRIER
#define BARRIER asm volatile("barrier.sync 0;" ::: "memory")
#endif
#define TABLE static __device__ const
#define LOOKED_UP static __constant__ const // what all threads of a warp ask for at once

// Threads may come to it from different places.
inline void barrier() { BARRIER; }

// What all threads of a block do: `count` things, shared among them; and wait until all have come.
#define EACH(k, count) for (uint32_t k = threadIdx.x; k < (count); k += blockDim.x)
#define FIRST (threadIdx.x == 0)
#define TOGETHER() barrier()

inline W none() { return 0; }
inline W all() { return ~W(0); }
inline Word &part(W &w, uint32_t) { return w; }
inline Word part(const W &w, uint32_t) { return w; }
inline uint32_t lowest(Word word) { return uint32_t(__ffs(int(word)) - 1); }

// A number of 64 bits of a lane, in the 64 words from `first` on.
inline uint64_t number(const W *first, uint32_t lane) {
  return first[2 * lane] | uint64_t(first[2 * lane + 1]) << 32;
}
inline void set_number(W *first, uint32_t lane, uint64_t value) {
  first[2 * lane] = W(value);
  first[2 * lane + 1] = W(value >> 32);
}
