// The operations on a tile, by a core or by all workers of a GPU's block: clock cycles, ports, and the
// saved state of instances whose program has ended. The text before this declares
//   step, levels, settle    the phases of the circuit; CLOCKED if it has clocks
//   store, advance          buffered writes of memories, and the switch to the next state
//   ONES_B, ONES_Q          words that are 1 at power-on
//   PORTS, BITS             the words that hold the bits of each word of a port
//   CLOCKS, PREVIOUS, MADE  the clocks of a cycle, and pairs of present and previous levels
//   CHECKS                  of each check: the word that is 1 where it fails, its number, the first
//                           word of the values of its message, and their bits
//   MESSAGE_WORDS           the words of the values of the first failed check
//   FROZEN                  words of `b` that are state, too
//   take, give              a column of operands to a word of a port, and such a word to a column

struct Instruction;

enum Task : uint32_t { QUIT, BEGIN, PASS, CHANGED, SETTLE, GIVE_PORT, TAKE_PORT, FREEZE, END };

// A wait of some lanes until one of the BITS from `first` to `end` is 1, or until a counter is not 0.
struct Wait {
  W who;
  const Instruction *what;
  uint32_t first, end, bit; // `bit` is the first of them
  bool counted;
};

// A task on a tile, for all workers of a GPU's block.
struct Work {
  Tile t;
  Share share;
  Task task;
  W whose; // lanes; GIVE_PORT, TAKE_PORT, FREEZE: an operand; PASS: lanes whose wait has ended
  uint32_t port, wait_count;
  uint64_t column;
  Wait waits[LANES]; // `wait_count` of them
  uint64_t due;      // the first turn at which an instance continues
};

// Return a counter of a lane, by its port.
inline uint64_t counter(const Tile &t, uint32_t port, uint32_t lane) {
  const uint32_t which = port - PORT_WORDS;
  return number_of(t, which, lane) + (which == CYCLES ? t.turn : 0);
}

// Record the first failed check of each lane, among the checks from `first` to `last`.
inline void record_failures(const Tile &t, uint32_t first, uint32_t last) {
  if (!FIRST) return;
  for (uint32_t k = first; k < last; k++) {
    W failed = none();
    each(t.b[CHECKS[k][0]] & t.active, [&](uint32_t lane) {
      if (number_of(t, FAILED, lane)) return;
      keep_number(t, FAILED, lane, CHECKS[k][1] + 1);
      keep_number(t, FAILED_AT, lane, number_of(t, CYCLES, lane) + t.turn);
      add(failed, lane);
    });
    if (!any(failed)) continue;
    for (uint32_t j = 0; j < CHECKS[k][3]; j++) {
      W &word = t.b[MESSAGE_WORDS + j];
      word = (word & ~failed) | (t.b[CHECKS[k][2] + j] & failed);
    }
  }
}

inline void stepped(Tile &t) {
  step(t);
  record_failures(t, 0, CLOCKED_CHECKS);
  store(t);
  advance(t);
  if (!CLOCKED) return;
  EACH(k, PREVIOUS_COUNT) t.b[PREVIOUS[k][1]] = t.b[PREVIOUS[k][0]];
  TOGETHER();
  levels(t);
  record_failures(t, CLOCKED_CHECKS, CHECK_COUNT);
  EACH(k, MADE_COUNT) t.b[MADE[k][1]] = t.b[MADE[k][0]];
  TOGETHER();
}

inline void changed(Tile &t) {
  if (!CLOCKED) return;
  W pending;
  do {
    stepped(t);
    pending = none();
    for (uint32_t k = 0; k < PENDING_COUNT; k++) pending |= t.b[PENDING[k]];
    TOGETHER();
  } while (any(pending & t.active));
}

inline void cycle(Tile &t) {
  if (!EDGES) return stepped(t);
  EACH(k, CLOCK_COUNT) t.b[CLOCKS[k]] = all();
  TOGETHER();
  changed(t);
  EACH(k, CLOCK_COUNT) t.b[CLOCKS[k]] = none();
  TOGETHER();
  changed(t);
}

inline void begin(Tile &t) {
  EACH(k, TILE_WORDS) t.b[k] = none();
  TOGETHER();
  EACH(k, ONES_B_COUNT) t.b[ONES_B[k]] = all();
  EACH(k, ONES_Q_COUNT) t.q[ONES_Q[k]] = all();
  TOGETHER();
  changed(t);
}

// Return the waiting lanes whose port has a 1 among its bits in registers, or among the others.
inline W met(const Work &x, bool state) {
  W found = none();
  for (uint32_t k = 0; k < x.wait_count; k++) {
    const Wait &wait = x.waits[k];
    W high = none();
    for (uint32_t j = wait.first; j < wait.end; j++) {
      const uint32_t bit = j == wait.first ? wait.bit : BITS[j];
      if (is_state(bit) == state) high |= word_of(x.t, bit);
    }
    found |= high & wait.who;
  }
  return found;
}

// Run clock cycles until an instance continues.
inline void pass(Work &x) {
  W high;
  uint64_t turn = x.t.turn;
  do {
    high = met(x, true);
    if (EDGES && x.wait_count) {
      settle(x.t);
      high |= met(x, false);
    }
    TOGETHER();
    cycle(x.t);
    // The step has just evaluated the logic before the edge.
    if (!EDGES) high |= met(x, false);
    turn++;
    if (FIRST) x.t.turn = turn;
  } while (!any(high) && turn < x.due && !STOPPED);
  if (FIRST) x.whose = high;
}

// Save the state of instances whose program has ended, while others go on.
inline void freeze(const Tile &t, const W &whose) {
  EACH(k, ENDED_WORDS) {
    const W w = k < STATES ? t.q[k] : t.b[FROZEN[k - STATES]];
    t.ended[k] = (t.ended[k] & ~whose) | (w & whose);
  }
}

inline void unfreeze(const Tile &t) {
  EACH(k, ENDED_WORDS) (k < STATES ? t.b[STATE + k] : t.b[FROZEN[k - STATES]]) = t.ended[k];
}

// Give a counter to a column.
inline void count(const Work &x) {
  uint64_t *const to = x.share.result(x.column);
  EACH(lane, x.share.lanes)
    if (has(x.whose, lane)) to[lane] = counter(x.t, x.port, lane);
}

inline void perform(Work &x) {
  switch (x.task) {
  case QUIT: break;
  case BEGIN: begin(x.t); break;
  case PASS: pass(x); break;
  case CHANGED: changed(x.t); break;
  case SETTLE: settle(x.t); break;
  case GIVE_PORT:
    if (x.port < PORT_WORDS) give(x.t, x.share, x.port, x.column, x.whose);
    else count(x);
    break;
  case TAKE_PORT: take(x.t, x.share, x.port, x.column, x.whose); break;
  case FREEZE: freeze(x.t, x.whose); break;
  case END: unfreeze(x.t); break;
  }
}
