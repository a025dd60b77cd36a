// Stands in for a GPU on this computer: the warps of a block take turns, in an order that is drawn, each
// up to where it waits for others: so whoever forgets to wait reads too early.

// A longjmp that is checked, as some compilers have it by default, goes to no other stack.
#undef _FORTIFY_SOURCE

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __launch_bounds__(...)
#define __ffs __builtin_ffs
#define SHARED_WORDS alignas(16) static W shared_words[1 << 16]
#define BARRIER(number, threads) fibers::wait(number, threads)
#define BARRIER_OF_ALL fibers::wait(0, fibers::alive)

static struct { unsigned x; } blockIdx, blockDim, threadIdx;

namespace fibers {

constexpr unsigned THREADS = 128, WARPS = THREADS / 32, STACK = 1 << 16;
constexpr unsigned BARRIERS = 3, LANES_OF_WARP = 32;

struct Fiber {
  ucontext_t start;
  jmp_buf place;
  bool begun, ended;
  char stack[STACK];
};

static Fiber fibers[THREADS];
static jmp_buf scheduler;
static unsigned alive, arrived[BARRIERS + WARPS], rounds[BARRIERS + WARPS];
static unsigned values[2][THREADS]; // of one exchange and of the next, which may begin before all have read
static bool moved; // since the last round something went on

inline void wait(unsigned number, unsigned count) {
  const unsigned round = rounds[number];
  moved = true;
  if (++arrived[number] == count) {
    arrived[number] = 0;
    rounds[number]++;
    return;
  }
  while (rounds[number] == round)
    if (!_setjmp(fibers[threadIdx.x].place)) _longjmp(scheduler, 1);
}

inline void wait_for_warp() { wait(BARRIERS + threadIdx.x / LANES_OF_WARP, LANES_OF_WARP); }

inline unsigned of_other(unsigned value, unsigned other) {
  unsigned *const now = values[rounds[BARRIERS + threadIdx.x / LANES_OF_WARP] & 1];
  now[threadIdx.x] = value;
  wait_for_warp();
  return now[other];
}

template <class Do> static Do *body;

template <class Do> void enter() {
  (*body<Do>)();
  fibers[threadIdx.x].ended = moved = true;
  // All others may already wait for each other.
  if (--alive && arrived[0] == alive) {
    arrived[0] = 0;
    rounds[0]++;
  }
  _longjmp(scheduler, 1);
}

// Lets each thread of a warp go to where it waits. Whether one of them went on.
template <class Do> bool turn(unsigned warp) {
  static unsigned k; // is not lost where threads jump
  moved = false;
  for (k = 0; k < LANES_OF_WARP; k++) {
    threadIdx.x = warp * LANES_OF_WARP + k;
    Fiber &fiber = fibers[threadIdx.x];
    if (fiber.ended || _setjmp(scheduler)) continue;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = STACK;
    makecontext(&fiber.start, enter<Do>, 0);
    setcontext(&fiber.start);
  }
  return moved;
}

// Runs `work` on all threads of a block.
template <class Do> void run(Do work) {
  static unsigned drawn;
  body<Do> = &work;
  blockDim.x = alive = THREADS;
  for (Fiber &fiber : fibers) fiber.begun = fiber.ended = false;
  while (alive) {
    bool went = false;
    drawn = drawn * 1664525 + 1013904223;
    for (unsigned k = 0; k < WARPS; k++)
      while (turn<Do>((drawn >> 16) + k & WARPS - 1)) went = true;
    if (alive && !went) {
      fprintf(stderr, "the threads of a block wait for each other\n");
      abort();
    }
  }
}

} // namespace fibers

inline unsigned __shfl_xor_sync(unsigned, unsigned value, unsigned distance) {
  return fibers::of_other(value, threadIdx.x ^ distance);
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned count) {
  count %= 32;
  return count ? high << count | low >> (32 - count) : high;
}

inline bool __any_sync(unsigned, bool value) {
  unsigned any = value;
  for (unsigned distance = 16; distance; distance >>= 1) any |= __shfl_xor_sync(~0u, any, distance);
  return any;
}
