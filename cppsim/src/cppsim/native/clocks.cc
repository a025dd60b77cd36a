// Clocks that advance an instance in time, until a wait in Python may end.
//
// At an edge for which Python waits only the clock's own word is written. The instance is stepped
// later, so that Python can still sample the values before the edge. Python owns all of these.

#include "deltas.h"
#include "probe.h"

#include <time.h>

extern "C" {

// Met where a word has one of `bits` or, if there is a program, where that gives not 0.
struct Condition {
  uint64_t word, bits;
  const Program *program;

  bool met(const uint64_t *words) const {
    return program ? probe_value(program, words) != 0 : (words[word] & bits) != 0;
  }
};

// A change of a signal to one level.
struct Edge {
  uint64_t count;  // how many there were
  uint64_t target; // the count at which the first wait may end, if one of the conditions is met
  uint64_t size;   // of the conditions
  const Condition *conditions;
  uint64_t settles; // the conditions are of words that the instance settles
};

// Changes its level, which is the lowest bit of a word, at `next` and each `half` period later.
struct Clock {
  uint64_t word;
  uint64_t quiet;    // the level that needs no step of the instance; 2: none; 3: both
  uint64_t previous; // the word of the previous level, to which a quiet level is written as well
  uint64_t next, half;
  Edge *edges[2]; // to each level; null if there never was a wait for it
};

struct Clocks {
  const Instance *instance;
  Deltas *deltas;
  Clock *clocks;
  uint64_t size;
  uint64_t now;
  uint64_t due;     // clocks whose time is now have yet to change
  uint64_t wake;    // when Python has something to do
  uint64_t limit;   // stop before events at or after this time
  uint64_t answer;  // of the last step
  uint64_t settled; // nothing has happened since the instance was settled
  uint64_t reached; // bit 2 i + level: an edge of clock i, if there is one for which to stop
  Waves *const *waves; // to be sampled before time goes on
  uint64_t waves_size;
  TakeSample *take_sample; // of all of them
};

} // extern "C"

namespace {

// Reasons to stop.
enum Reason { EDGE = 1, MESSAGES = 2, TIME = 3, SLICE = 4, FAILED = 5, WOKEN = 6 };

constexpr uint64_t BOTH_LEVELS = 3; // quiet
constexpr uint64_t NEVER = ~uint64_t(0);
constexpr uint64_t AGE = uint64_t(1) << 61; // when the time is to be counted from anew
constexpr double SECONDS = 0.005;           // after which Python may want to hear of signals
constexpr unsigned ROUNDS = 32;             // between looks at the real time

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

bool over(Clocks *clocks, Edge *edge) {
  const Instance *instance = clocks->instance;
  bool found = ++edge->count >= edge->target;
  if (edge->size && edge->settles && !clocks->settled) {
    instance->settle(instance->top);
    clocks->settled = 1;
  }
  for (uint64_t i = 0; i < edge->size; i++)
    found |= edge->conditions[i].met(instance->words);
  return found;
}

// Change the clocks that are due; return whether the instance needs a step.
bool change(Clocks *clocks) {
  const uint64_t now = clocks->now;
  uint64_t *words = clocks->instance->words, changed = 0;
  bool seen = false;
  for (uint64_t i = 0; i < clocks->size; i++) {
    Clock &clock = clocks->clocks[i];
    if (clock.next != now) continue;
    clock.next += clock.half;
    const uint64_t level = (words[clock.word] ^= 1) & 1;
    if (level == clock.quiet || clock.quiet == BOTH_LEVELS) words[clock.previous] = words[clock.word];
    else seen = true;
    if (clock.edges[level]) changed |= uint64_t(1) << (2 * i + level);
  }
  clocks->due = 0;
  bool found = false;
  for (uint64_t left = changed; left; left &= left - 1) {
    const unsigned number = __builtin_ctzll(left);
    found |= over(clocks, clocks->clocks[number / 2].edges[number % 2]);
  }
  if (found) clocks->reached = changed;
  return seen;
}

// Step the instance; return 0, or the reason to stop.
int step(Clocks *clocks) {
  const Instance *instance = clocks->instance;
  Deltas *deltas = clocks->deltas;
  clocks->settled = 0;
  do {
    clocks->answer = uint64_t(instance->step(instance->top));
    if (deltas->attention == WATCHES) {
      if (deltas->settles) instance->settle(instance->top);
      deltas_look(deltas);
      if (deltas->fired) return WOKEN;
    }
    if (clocks->answer & 2) return MESSAGES;
  } while (clocks->answer & 1);
  return 0;
}

// Change clocks, and execute the delta cycles that follow; return 0, or the reason to stop.
int go_through_deltas(Clocks *clocks) {
  Deltas *deltas = clocks->deltas;
  bool more = true;
  while (more) {
    bool active = deltas_begin(deltas, 0);
    clocks->settled = 1;
    if (clocks->due) active |= change(clocks);
    more = deltas_end(deltas, active);
    if (deltas->fired || clocks->reached || deltas->answer & 2) return WOKEN;
  }
  deltas->count = 0;
  return 0;
}

// Whether that is done.
bool sample(Clocks *clocks) {
  for (uint64_t i = 0; i < clocks->waves_size; i++) {
    if (clocks->take_sample(clocks->waves[i], clocks->now)) return false;
    clocks->settled = 1;
  }
  return true;
}

uint64_t nearest(const Clocks *clocks) {
  uint64_t found = NEVER;
  for (uint64_t i = 0; i < clocks->size; i++)
    if (clocks->clocks[i].next < found) found = clocks->clocks[i].next;
  return found;
}

} // namespace

// Advance time; return the reason to stop. There is at least one clock. What `reached` has from an
// earlier call, and was not cleared, is reported again.
extern "C" __attribute__((visibility("default"))) int clocks_fast_forward(Clocks *clocks) {
  double end = 0;
  clocks->settled = clocks->deltas->settled = 0;
  for (unsigned round = 1; !clocks->reached; round++) {
    if (clocks->due) {
      int reason = 0;
      if (clocks->deltas->attention == DELTAS) {
        reason = go_through_deltas(clocks);
      } else {
        const bool seen = change(clocks);
        if (clocks->reached) break;
        if (seen) reason = step(clocks);
      }
      if (reason == WOKEN) clocks->deltas->stopped = 1;
      if (reason) return reason;
    }
    if (!sample(clocks)) return FAILED;
    const uint64_t next = nearest(clocks);
    clocks->due = next <= clocks->wake;
    clocks->now = clocks->due ? next : clocks->wake;
    if (clocks->now >= clocks->limit || clocks->now == clocks->wake) return TIME;
    if (clocks->now >= AGE) return SLICE;
    if (round % ROUNDS == 0) {
      const double real = seconds();
      if (!end) end = real + SECONDS;
      else if (real > end) return SLICE;
    }
  }
  return EDGE;
}
