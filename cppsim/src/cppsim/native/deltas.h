// Delta cycles of an instance in the order of Amaranth's simulator, and the signals with wakers.
//
// An instance evaluates all logic at once. Here logic shows a change one delta cycle late for each
// assignment on its way, and so does a clock that logic makes. Python owns all of these.

#pragma once

#include "instance.h"

extern "C" {

// A word with bits whose changes call a waker.
struct Watch {
  uint64_t word;
  uint64_t depth; // delta cycles after which logic shows a change; 0: registers and inputs
  uint64_t rising, falling;
  uint64_t before, now; // the word at the last two looks
};

// A word with clocks, and the one with their levels before.
struct ClockWord {
  uint64_t word, before;
};

// A word that is not 0 while an edge of a clock that logic makes is pending.
struct DerivedEdge {
  uint64_t word, depth;
};

// What matters besides ticks of clocks: nothing, watches after each step, or delta cycles as well.
enum Attention : uint64_t { TICKS = 0, WATCHES = 1, DELTAS = 2 };

struct Deltas {
  const Instance *instance;
  uint64_t size;     // words of the instance
  uint64_t *rows;    // words of past delta cycles, with logic evaluated: a ring
  uint64_t capacity; // rows in the ring
  uint64_t newest;   // the row of this delta cycle
  uint64_t count;    // rows that logic shows; 0 between time steps
  uint64_t origin;   // the oldest of them stands for power-on
  uint64_t still;    // delta cycles since a register or an input changed
  const ClockWord *clocks;
  uint64_t clocks_size;
  const DerivedEdge *derived;
  uint64_t derived_size;
  uint8_t *late;      // by delta cycles that are left, then by derived edge: whether it is pending
  uint64_t late_rows; // 1 plus the largest depth
  Watch *watches;
  uint64_t watches_size;
  uint64_t settles; // watches have words that the instance settles
  uint64_t settled; // nothing has happened since the instance was settled
  uint64_t answer;  // of the instance, in this delta cycle
  uint64_t fired;   // the last look has found a change that calls a waker
  uint64_t attention;
  uint64_t stopped; // clocks_fast_forward has stopped in the middle of a time step
};

// The first half of a delta cycle: edges. Return whether there were any.
int deltas_begin(Deltas *deltas, int fresh);

// The second half, after inputs were written; `active` if anything has changed. Return whether
// another delta cycle must follow.
int deltas_end(Deltas *deltas, int active);

// Execute delta cycles until none must follow, or a waker is called. Return whether one must follow.
int deltas_run(Deltas *deltas);

// Compare the words of all watches with those at the last look.
void deltas_look(Deltas *deltas);

} // extern "C"
